// A lesson: sliders choose two runs, which play side by side.

const SPEEDS = [1, 5, 10, 20, 50, 100, 500]; // µs in a second
const WINDOW = 120e3; // ns

class Side {
  constructor(section, lesson) {
    this.section = section;
    this.lesson = lesson;
    this.choice = section.querySelector("select");
    this.why = section.querySelector(".why");
    const scroller = section.querySelector(".lanes");
    this.lanes = new Lanes(section.querySelector("canvas"), scroller);
    this.lanes.narrow = 900;
    this.lanes.whole = true;
    this.choice.addEventListener("change", () => lesson.choose());
    new ResizeObserver(() => {
      if (this.lanes.trace && scroller.clientWidth !== this.lanes.width) this.lanes.layOut();
    }).observe(scroller);
    scroller.addEventListener("scroll", () => this.lanes.draw());
  }

  show(run) {
    this.run = run;
    this.trace = run.trace ??= new Trace(run.bytes);
    this.lanes.show(this.trace);
    const {recordTime, recordKind, kinds, texts, recordWhy} = this.trace;
    this.raised = recordTime.filter((_, at) => kinds[recordKind[at]] === "irq_raised");
    this.ends = Array.from(this.trace.messageReceived, (record, message) => [recordTime[record], message])
      .sort((one, other) => one[0] - other[0]);
    // Records worth a step.
    this.steps = Array.from(recordTime.keys()).filter((record) => texts[recordWhy[record]] !== "");
    const cores = this.trace.lanes.filter((lane) => lane.kind === "rank" || lane.kind === "handlers");
    this.tracks = cores.flatMap((lane) => lane.tracks);
  }

  at(time, record) {
    const {trace, lanes} = this;
    lanes.now = time;
    lanes.cursor = record;
    lanes.view(time - this.lesson.window * 0.7, time + this.lesson.window * 0.3);
    const over = time > trace.end;
    this.section.classList.toggle("over", over);
    this.why.textContent = over ? "The record of this side has ended." : record < 0 ? ""
      : `${trace.agent(record)}: ${trace.texts[trace.recordWhy[record]]}`;
    const told = {latency: "—", interrupts: String(firstAbove(this.raised, time, 0, this.raised.length))};
    const ended = this.ends.findLastIndex(([end]) => end <= time);
    told.messages = String(ended + 1);
    if (ended >= 0) told.latency = timeWords(trace.took(this.ends[ended][1]));
    let busy = 0;
    for (const track of this.tracks)
      track.share(0, time, (state, ns) => {
        if (!["asleep", "without its CPU"].includes(trace.states[state])) busy += ns;
      });
    told.cpu = timeWords(busy, 1);
    for (const [name, words] of Object.entries(told))
      this.section.querySelector(`[data-live=${name}]`).textContent = words;
  }
}

// A slider of values, each with its words, or, if it is `exact`, of all numbers between them.
class Slider {
  constructor(range, {words, exact}, moved) {
    Object.assign(this, {range, words, exact});
    this.box = range.closest("div").querySelector("[type=number]");
    range.addEventListener("input", () => {
      this.take(this.between(Number(range.value)));
      moved();
    });
    this.box?.addEventListener("input", () => {
      if (!this.box.value || !this.box.validity.valid) return;
      this.number = Number(this.box.value) * exact.per;
      range.value = this.place(this.number);
      this.tell();
      moved();
    });
    this.take(this.between(Number(range.value)));
  }

  // What a place of the slider means: the number of a value, or a number between two.
  between(place) {
    if (!this.exact) return place;
    const {numbers, whole} = this.exact, low = Math.floor(place), high = Math.ceil(place);
    const number = numbers[low] + (numbers[high] - numbers[low]) * (place - low);
    return whole ? Math.round(number) : Number(number.toPrecision(6));
  }

  place(number) {
    const {numbers} = this.exact, high = numbers.findIndex((each) => each >= number);
    if (high <= 0) return high ? numbers.length - 1 : 0;
    return high - (numbers[high] - number) / (numbers[high] - numbers[high - 1]);
  }

  take(number) {
    this.number = number;
    if (this.box) this.box.value = Number((number / this.exact.per).toPrecision(9));
    this.tell();
  }

  tell() {
    const {exact, number} = this, at = exact ? exact.numbers.indexOf(number) : number;
    const words = this.words[at] ?? `${Number((number / exact.per).toPrecision(6))} ${exact.unit}`;
    this.range.previousElementSibling.textContent = words.trim();
    this.range.setAttribute("aria-valuetext", words.trim());
  }
}

class Lesson {
  constructor(root, data) {
    Object.assign(this, {root, data, now: 0, told: 0, window: WINDOW});
    this.sliders = [...root.querySelectorAll(".sliders [type=range]")].map((range, at) =>
      new Slider(range, data.sliders[at], () => this.choose()));
    root.querySelector(".sliders").addEventListener("submit", (event) => event.preventDefault());
    this.sides = [...root.querySelectorAll(".side")].map((section) => new Side(section, this));
    this.clock = root.querySelector(".clock");
    this.speed = root.querySelector("[name=speed]");
    this.speed.addEventListener("input", () => {
      const words = `${SPEEDS[this.speed.value]} µs a second`;
      this.speed.setAttribute("aria-valuetext", words);
      this.speed.nextElementSibling.textContent = words;
    });
    this.sides.forEach(({section}, side) => section.querySelector("[data-next]")
      .addEventListener("click", () => this.next(side)));
    for (const button of root.querySelectorAll("[data-do]"))
      button.addEventListener("click", () => this.act(button.dataset.do));
    for (const {lanes} of this.sides)
      lanes.canvas.addEventListener("keydown", (event) => {
        const keys = {"ArrowRight": "step", "ArrowLeft": "back", " ": "play", "Home": "start",
          "+": "in", "=": "in", "-": "out"};
        if (!(event.key in keys)) return;
        event.preventDefault();
        this.act(keys[event.key]);
      });
    for (const question of root.querySelectorAll("fieldset"))
      question.addEventListener("change", () => this.forget(question));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      for (const {lanes} of this.sides) lanes.layOut();
    });
    this.choose();
  }

  // Shows the runs that sliders and rules choose, as soon as they are there.
  async choose() {
    this.again = true;
    if (this.busy) return;
    this.busy = true;
    const state = this.root.querySelector(".state");
    const patience = setTimeout(() => (state.textContent = "Computing …"), 400);
    while (this.again) {
      this.again = false;
      let runs = null;
      state.textContent = await Promise.all(this.sides.map(({choice}) => this.runOf(choice.selectedIndex)))
        .then((made) => ((runs = made), ""), (error) => `${error.message} What is shown is as before.`);
      if (runs && !this.again) this.show(runs);
    }
    clearTimeout(patience);
    this.busy = false;
    this.root.dataset.ready = "yes";
  }

  // The run under a rule: one of the page's own, or one that is made now.
  async runOf(rule) {
    const {runs, places, sliders, rules} = this.data;
    if (runs) {
      const place = this.sliders.reduce((sum, {number}, at) => sum * sliders[at].values + number, 0);
      return runs[places[place * rules.length + rule]];
    }
    const asked = new URLSearchParams(this.sliders.map(({range, number}) => [range.name, number]));
    const answer = await fetch(`run?${asked}&rule=${rule}`).catch(() => {
      throw new Error("The lab has ended: start it again by its command.");
    });
    if (!answer.ok) throw new Error(await answer.text());
    const bytes = await answer.arrayBuffer(), length = new DataView(bytes).getUint32(0, true);
    const told = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 4, length)));
    return {...told, bytes: bytes.slice(4 + length)};
  }

  show(runs) {
    this.sides.forEach((side, at) => side.show(runs[at]));
    this.end = Math.max(...this.sides.map((side) => side.trace.end));
    // What is to be told, of both sides, in order of time.
    this.events = this.sides.flatMap(({steps, trace}, side) =>
      steps.map((record) => ({time: trace.recordTime[record], side, record})))
      .sort((one, other) => one.time - other.time || one.side - other.side || one.record - other.record);
    this.eventTimes = Float64Array.from(this.events, ({time}) => time);
    this.tellFigures();
    legendOf(this.root.querySelector(".legend"), ...this.sides.map(({lanes}) => lanes));
    this.seek(this.now);
  }

  tellFigures() {
    const heads = this.root.querySelectorAll(".figures-of-run th");
    this.sides.forEach((side, at) => {
      heads[at + 1].textContent = this.data.rules[side.choice.selectedIndex];
    });
    const rows = this.data.metrics.flatMap(({title, unit}, at) => {
      if (this.sides.every(({run}) => run.figures[at] === null)) return [];
      const told = this.sides.map(({run}) => run.figures[at] === null ? "—"
        : `${run.figures[at].toLocaleString("en", {maximumFractionDigits: 3, useGrouping: false})} ${unit}`);
      return made("tr", "", ...[title, ...told].map((each) => made("td", each)));
    });
    this.root.querySelector(".figures-of-run tbody").replaceChildren(...rows);
    this.root.querySelector(".commands").textContent =
      this.sides.map(({run}) => run.command).join("\n");
  }

  seek(time) {
    const now = Math.max(0, Math.min(time, this.end));
    const told = firstAbove(this.eventTimes, now, 0, this.events.length);
    this.showEvents(now > 0 ? told : Math.min(1, told), now);
  }

  // The next thing to be told, or the last one: several may happen at one time.
  step(way) {
    this.pause();
    const told = Math.max(1, Math.min(this.events.length, this.told + way));
    if (this.events.length) this.showEvents(told, this.eventTimes[told - 1]);
  }

  // The next thing to be told of one side.
  next(side) {
    this.pause();
    const at = this.events.findIndex((event, at) => at >= this.told && event.side === side);
    if (at >= 0) this.showEvents(at + 1, this.eventTimes[at]);
  }

  showEvents(told, now) {
    [this.told, this.now] = [told, now];
    this.sides.forEach((side, at) => {
      const last = this.events.slice(0, told).findLast((event) => event.side === at);
      side.at(now, last ? last.record : -1);
    });
    this.clock.textContent = timeWords(now);
  }

  act(what) {
    if (what === "play") this.playing ? this.pause() : this.play();
    else if (what === "step") this.step(1);
    else if (what === "back") this.step(-1);
    else if (what === "start") this.seek(0);
    else if (what === "in" || what === "out") {
      this.window = Math.max(5e3, Math.min(5e6, this.window * (what === "in" ? 0.6 : 1 / 0.6)));
      this.seek(this.now);
    } else if (what === "check") this.check();
  }

  play() {
    if (this.now >= this.end) this.seek(0);
    this.root.querySelector("[data-do=play]").textContent = "Pause";
    let before = performance.now();
    const move = (now) => {
      if (!this.playing) return;
      this.seek(this.now + Math.min(100, Math.max(0, now - before)) * SPEEDS[this.speed.value]);
      before = now;
      if (this.now < this.end) this.playing = requestAnimationFrame(move);
      else this.pause();
    };
    this.playing = requestAnimationFrame(move);
  }

  pause() {
    if (this.playing) cancelAnimationFrame(this.playing);
    this.playing = 0;
    this.root.querySelector("[data-do=play]").textContent = "Play";
  }

  // Another answer than the one that was checked.
  forget(question) {
    const told = question.querySelector(".answer");
    told.className = "answer";
    told.textContent = this.root.querySelector(".score").textContent = "";
  }

  check() {
    let right = 0;
    const questions = [...this.root.querySelectorAll("fieldset")];
    for (const question of questions) {
      const chosen = question.querySelector("input:checked"), told = question.querySelector(".answer");
      const isRight = chosen?.value === question.dataset.right;
      right += isRight;
      told.className = `answer ${isRight ? "good" : "bad"}`;
      told.textContent = !chosen ? "Not answered yet."
        : `${isRight ? "✓ Right." : "✗ Not so; look again."} ${isRight ? question.dataset.because : ""}`;
    }
    this.root.querySelector(".score").textContent = `${right} of ${questions.length} right`;
  }
}

async function openLesson() {
  const data = JSON.parse(document.getElementById("lesson").textContent);
  if (data.runs) {
    const bytes = await unpacked(document.getElementById("traces").textContent);
    let offset = 0;
    for (const run of data.runs) {
      run.bytes = bytes.slice(offset, offset + run.size);
      offset += run.size;
    }
  }
  const root = document.querySelector(".lesson");
  root.lesson = new Lesson(root, data);
}

openLesson();
