// The timeline of a page: its lanes, and what keys, fingers and buttons do with them.

const TABLE_ROWS = 200;

class Timeline {
  constructor(section) {
    const find = (selector) => section.querySelector(selector);
    this.section = section;
    this.scroller = find(".lanes");
    this.lanes = new Lanes(find("canvas"), this.scroller);
    this.said = find(".said");
    this.message = find(".message");
    this.seen = find(".seen");
    this.tip = find(".tip");
    this.choice = find("select");
    this.lanes.drawn = () => this.list();
    this.traces = [...section.querySelectorAll("script[type='text/plain']")];
    this.choice?.addEventListener("change", () => this.open(this.choice.selectedIndex));
    for (const button of section.querySelectorAll("button[data-do]"))
      button.addEventListener("click", () => this.act(button.dataset.do));
    this.seen.addEventListener("toggle", () => this.list());
    this.listen(this.lanes.canvas);
    new ResizeObserver(() => {
      if (this.lanes.trace && this.scroller.clientWidth !== this.lanes.width) this.lanes.layOut();
    }).observe(this.scroller);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.lanes.layOut());
    this.scroller.addEventListener("scroll", () => this.lanes.draw());
  }

  async open(number) {
    this.lanes.show(new Trace(await unpacked(this.traces[number].textContent)));
    legendOf(this.section.querySelector(".legend"), this.lanes);
    if (this.lanes.trace.slowest >= 0) this.choose(this.lanes.trace.slowest);
    else this.say("No message is whole in this trace.");
    this.section.dataset.ready = this.lanes.trace.recordTime.length;
  }

  // -- messages --

  choose(message) {
    const {lanes} = this, {trace} = lanes;
    lanes.selected = message;
    const begin = trace.recordTime[trace.messageSent[message]], took = trace.took(message);
    lanes.view(begin - took * 0.12, begin + took * 1.12);
    this.tell(message);
  }

  tell(message) {
    const {trace} = this.lanes;
    const from = trace.agent(trace.messageSent[message]);
    const to = trace.agent(trace.messageReceived[message]);
    const slowest = message === trace.slowest ? "The slowest message" : "Message";
    const name = `${slowest}: ${from} to ${to}, ${trace.messageBytes[message]} bytes, `
      + `${timeWords(trace.took(message))} (${message + 1} of ${trace.messageSent.length})`;
    this.message.querySelector("summary").textContent = name;
    let before = trace.recordTime[trace.messageSent[message]];
    const start = before;
    const rows = trace.stagesOf(message).map(([stage, record]) => {
      const at = trace.recordTime[record], since = at - before;
      before = at;
      return [timeWords(at - start), timeWords(since), stage, trace.agent(record), trace.text(record)];
    });
    this.message.querySelector(".scroll").replaceChildren(
      tableOf(["time", "since", "stage", "agent", "record"], rows));
    this.say(name);
  }

  step(way) {
    const {trace, selected} = this.lanes, count = trace.messageSent.length;
    if (count) this.choose(((selected < 0 ? trace.slowest : selected + way) + count) % count);
  }

  // The next record in time, or the one before.
  stepRecord(way) {
    const {lanes} = this, {trace, begin, end} = lanes, {recordTime} = trace;
    const last = recordTime.length - 1;
    let record = lanes.cursor + way;
    if (lanes.cursor < 0 || recordTime[lanes.cursor] < begin || recordTime[lanes.cursor] > end)
      record = firstAbove(recordTime, begin - 1, 0, last);
    lanes.cursor = Math.max(0, Math.min(last, record));
    const at = recordTime[lanes.cursor];
    if (at < begin || at > end) lanes.view(at - (end - begin) / 2, at + (end - begin) / 2);
    this.say(this.recordWords(lanes.cursor));
    lanes.draw();
  }

  // -- words --

  say(words) {
    this.said.textContent = words;
  }

  recordWords(record) {
    const {trace} = this.lanes;
    return `${timeWords(trace.recordTime[record])}, ${trace.agent(record)}: ${trace.text(record)}`;
  }

  words({lane, record, span}, x) {
    const {trace} = this.lanes, mine = span < 0 && record >= 0;
    if (mine) return this.recordWords(record);
    if (span >= 0) {
      const state = trace.states[trace.spanState[span]];
      const took = timeWords(trace.spanEnd[span] - trace.spanStart[span]);
      const due = timeWords(trace.spanUntil[span] - trace.spanStart[span]);
      const call = trace.texts[trace.spanText[span]];
      const what = call ? `${call}, for ${took}` : state === "timer" ? `timer of ${due}, ran for ${took}` : `${state} for ${took}`;
      const text = record >= 0 && lane.kind !== "rank" ? `; ${this.recordWords(record)}` : "";
      return `${lane.name}: ${what}, from ${timeWords(trace.spanStart[span])}${text}`;
    }
    const time = this.lanes.time(x);
    const depth = lane.depths.length ? `: ${this.lanes.depthAt(lane, time)} in the ring` : "";
    return `${lane.name}${depth}, ${timeWords(time)}`;
  }

  // The records in view, as a table for those who do not see the lanes.
  list() {
    if (!this.seen.open || !this.lanes.trace) return;
    clearTimeout(this.later);
    this.later = setTimeout(() => {
      const {trace, begin, end} = this.lanes;
      const first = firstAbove(trace.recordTime, begin - 1e-6, 0, trace.recordTime.length);
      const last = firstAbove(trace.recordTime, end, first, trace.recordTime.length);
      const rows = [];
      for (let record = first; record < Math.min(last, first + TABLE_ROWS); record++)
        rows.push([timeWords(trace.recordTime[record]), trace.agent(record), trace.text(record)]);
      const left = last - first - rows.length;
      this.seen.querySelector("p").textContent =
        left > 0 ? `The first ${rows.length} of ${last - first} records in view.` : `${rows.length} records.`;
      this.seen.querySelector(".scroll").replaceChildren(tableOf(["time", "agent", "record"], rows));
    }, 200);
  }

  // -- what the reader does --

  act(what) {
    const {lanes} = this;
    if (what === "in") lanes.zoom(0.6);
    else if (what === "out") lanes.zoom(1 / 0.6);
    else if (what === "left") lanes.pan(-0.2);
    else if (what === "right") lanes.pan(0.2);
    else if (what === "all") lanes.view(0, lanes.trace.end);
    else if (what === "slowest") this.choose(lanes.trace.slowest);
    else if (what === "next") this.step(1);
    else if (what === "previous") this.step(-1);
    else if (what === "record") this.stepRecord(1);
    else if (what === "recordBefore") this.stepRecord(-1);
  }

  listen(canvas) {
    const keys = {"ArrowLeft": "left", "ArrowRight": "right", "+": "in", "=": "in", "-": "out",
      "Home": "all", "n": "next", "p": "previous", "s": "slowest", ".": "record", ",": "recordBefore"};
    canvas.addEventListener("keydown", (event) => {
      if (!(event.key in keys) || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      this.act(keys[event.key]);
    });
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.shiftKey) return; // the page scrolls
      event.preventDefault();
      if (event.ctrlKey) this.lanes.zoom(Math.exp(event.deltaY / 300), event.offsetX);
      else this.lanes.pan((event.deltaX || event.deltaY) / 1000);
    }, {passive: false});
    this.fingers = new Map();
    canvas.addEventListener("pointerdown", (event) => {
      this.moved = 0;
      this.fingers.set(event.pointerId, event.offsetX);
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => this.move(event));
    for (const end of ["pointerup", "pointercancel"])
      canvas.addEventListener(end, (event) => {
        if (end === "pointerup" && this.fingers.size === 1 && this.moved < 4) this.click(event);
        this.fingers.delete(event.pointerId);
      });
    canvas.addEventListener("pointerleave", () => (this.tip.hidden = true));
    canvas.addEventListener("dblclick", (event) => this.lanes.zoom(0.4, event.offsetX));
  }

  move(event) {
    const {lanes, fingers} = this, x = event.offsetX;
    if (!fingers.has(event.pointerId)) return this.hover(event);
    const before = fingers.get(event.pointerId);
    if (fingers.size === 1) {
      this.moved += Math.abs(x - before);
      lanes.view(lanes.begin - (lanes.time(x) - lanes.time(before)),
        lanes.end - (lanes.time(x) - lanes.time(before)));
    } else {
      const other = [...fingers].find(([id]) => id !== event.pointerId)[1];
      const factor = Math.max(1, Math.abs(before - other)) / Math.max(1, Math.abs(x - other));
      lanes.zoom(factor, other);
      this.moved = 99;
    }
    fingers.set(event.pointerId, x);
  }

  hover(event) {
    const found = this.lanes.trace && this.lanes.at(event.offsetX, event.offsetY);
    this.tip.hidden = !found;
    if (!found) return;
    this.tip.textContent = this.words(found, event.offsetX);
    const wide = this.scroller.clientWidth;
    const box = Math.min(320, wide - 8);
    this.tip.style.width = `${box}px`;
    this.tip.style.left = `${Math.max(0, Math.min(event.offsetX + 12, wide - box - 4))}px`;
    this.tip.style.top = `${event.offsetY + 18}px`;
  }

  click(event) {
    const {lanes} = this, found = lanes.at(event.offsetX, event.offsetY, true);
    if (!found) return;
    lanes.cursor = found.record;
    this.say(this.words(found, event.offsetX));
    const message = found.record >= 0 ? lanes.trace.messageOf[found.record] : -1;
    if (message >= 0) {
      lanes.selected = message;
      this.tell(message);
    }
    lanes.draw();
  }
}

for (const section of document.querySelectorAll(".timeline")) {
  section.timeline = new Timeline(section);
  section.timeline.open(0);
}
