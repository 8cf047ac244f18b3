// Lanes of a trace on a canvas. Colours are those of the page's style, each with a pattern or shape
// of its own.

const AXIS = 24, BAND = 20, NARROW = 700, LABELS = 150, ROW = 15;
const HEIGHTS = {"wire": ROW, "DMA": ROW, "ring": 30, "timer and interrupts": 22, "handlers": ROW,
  "rank": 24, "other": 16};
// More arrows than that in view would be a blot.
const ARROWS_MAX = 120;
// Pixels; narrower spans share a column.
const COLUMN = 2;
// A record is meant up to here from its mark, pixels.
const REACH = 7;
const PATTERNS = {"marked packet": "dots", "spinning": "slashes", "in the kernel": "cross",
  "without its CPU": "sparse", "interrupt taken": "sparse", "timer": "none"};
// Records with a sign of their own; at one place the first of these is drawn.
const SIGNS = ["irq_raised", "isend", "received", "irq_held_back", "irq_absorbed"];
const SIGN_WORDS = {"irq_raised": "▲ interrupt raised", "isend": "● isend", "received": "○ received",
  "irq_held_back": "□ interrupt held back or absorbed",
  "irq_absorbed": "□ interrupt held back or absorbed", "irq_deferred": "□ interrupt deferred"};

class Lanes {
  constructor(canvas, scroller) {
    this.canvas = canvas;
    this.scroller = scroller;
    this.pen = canvas.getContext("2d");
    this.selected = -1;
    this.cursor = -1;
    this.now = Infinity; // what comes later is not shown
    this.narrow = NARROW;
    this.whole = false; // all lanes at once, however many
  }

  show(trace) {
    this.trace = trace;
    this.begin = 0;
    this.end = Math.max(trace.end, 1);
    this.selected = this.cursor = -1;
    this.layOut();
  }

  // Places of all lanes, for the width that there is.
  layOut() {
    const {trace} = this;
    if (!trace) return;
    this.width = this.scroller.clientWidth;
    this.left = this.width < this.narrow ? 0 : LABELS;
    let top = AXIS, node = -1;
    for (const lane of trace.lanes) {
      if (lane.node !== node) {
        lane.band = top;
        top += BAND;
        node = lane.node;
      } else lane.band = -1;
      if (!this.left) top += 13;
      lane.top = top;
      lane.row = HEIGHTS[lane.kind];
      lane.height = lane.row * lane.rows;
      top += lane.height + 5;
    }
    this.total = top + 4;
    const most = this.whole ? this.total : Math.max(220, Math.round(window.innerHeight * 0.72));
    this.height = Math.min(this.total, most);
    const scale = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(this.width * scale);
    this.canvas.height = Math.round(this.height * scale);
    this.canvas.style.width = `${this.width}px`;
    this.canvas.style.height = `${this.height}px`;
    this.scroller.style.height = `${this.height}px`;
    this.canvas.nextElementSibling.style.height = `${this.total - this.height}px`;
    this.readStyle();
    this.draw();
  }

  readStyle() {
    const style = getComputedStyle(this.canvas);
    this.ink = style.getPropertyValue("--ink");
    this.paper = style.getPropertyValue("--paper");
    this.soft = style.getPropertyValue("--soft");
    this.line = style.getPropertyValue("--line");
    this.band = style.getPropertyValue("--band");
    this.colours = this.trace.states.map((state) => style.getPropertyValue(stateVariable(state)));
    this.fills = this.trace.states.map((state, at) =>
      patternOf(this.pen, PATTERNS[state], this.colours[at], this.paper));
  }

  // -- times and places --

  x(time) {
    return this.left + (time - this.begin) / (this.end - this.begin) * (this.width - this.left);
  }

  time(x) {
    return this.begin + (x - this.left) / (this.width - this.left) * (this.end - this.begin);
  }

  // Shows that time, within the trace.
  view(begin, end) {
    if (this.now < Infinity) {
      [this.begin, this.end] = [begin, end];
      return this.draw();
    }
    const most = Math.max(this.trace.end, 1) * 1.02;
    const length = Math.min(Math.max(end - begin, 20), most);
    this.begin = Math.max(-most * 0.01, Math.min(begin, most - length));
    this.end = this.begin + length;
    this.draw();
  }

  zoom(factor, x = (this.left + this.width) / 2) {
    const at = this.time(x);
    this.view(at - (at - this.begin) * factor, at + (this.end - at) * factor);
  }

  pan(share) {
    const way = (this.end - this.begin) * share;
    this.view(this.begin + way, this.end + way);
  }

  // -- drawing --

  draw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.paint();
      this.drawn?.();
    });
  }

  paint() {
    const {pen, trace} = this, scale = window.devicePixelRatio || 1;
    this.scroll = this.scroller.scrollTop;
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    pen.fillStyle = this.paper;
    pen.fillRect(0, 0, this.width, this.height);
    const ticks = this.ticks();
    pen.save();
    pen.beginPath();
    pen.rect(0, AXIS, this.width, this.height - AXIS);
    pen.clip();
    pen.translate(0, -this.scroll);
    this.paintGround(ticks);
    for (const lane of trace.lanes) {
      if (lane.top + lane.height < this.scroll || lane.top - BAND > this.scroll + this.height)
        continue;
      pen.save();
      pen.beginPath();
      pen.rect(this.left, lane.top - 4, this.width, lane.height + 8);
      pen.clip();
      for (const track of lane.tracks) this.paintTrack(lane, track);
      if (lane.depths.length) this.paintDepths(lane);
      if (lane.marks.length) this.paintMarks(lane);
      pen.restore();
      this.paintLabel(lane);
    }
    pen.beginPath();
    pen.rect(this.left, 0, this.width, this.total);
    pen.clip();
    this.paintArrows();
    this.paintCursor();
    pen.restore();
    this.paintAxis(ticks);
  }

  ticks() {
    const about = (this.end - this.begin) / Math.max(2, (this.width - this.left) / 110);
    const power = 10 ** Math.floor(Math.log10(about));
    const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= about);
    const found = [];
    for (let at = Math.ceil(Math.max(0, this.begin) / step) * step; at < this.end; at += step)
      found.push(at);
    this.digits = 3 - Math.floor(Math.log10(step) + 1e-9);
    return found;
  }

  paintGround(ticks) {
    const {pen} = this;
    pen.fillStyle = this.line;
    for (const tick of ticks) pen.fillRect(Math.round(this.x(tick)), this.scroll, 0.5, this.height);
    for (const lane of this.trace.lanes) {
      if (lane.band >= 0) {
        pen.fillStyle = this.band;
        pen.fillRect(0, lane.band, this.width, BAND - 4);
        pen.fillStyle = this.ink;
        pen.font = "bold 12px system-ui, sans-serif";
        pen.fillText(`node${lane.node}`, 4, lane.band + BAND / 2 - 2);
        pen.font = "12px system-ui, sans-serif";
      }
      pen.fillStyle = this.line;
      pen.fillRect(this.left, lane.top + lane.height, this.width, 0.5);
    }
  }

  paintLabel(lane) {
    const {pen} = this;
    pen.fillStyle = this.soft;
    if (this.left) pen.fillText(lane.name, 4, lane.top + lane.height / 2, this.left - 8);
    else pen.fillText(lane.name, 4, lane.top - 6);
  }

  paintAxis(ticks) {
    const {pen} = this;
    pen.fillStyle = this.paper;
    pen.fillRect(0, 0, this.width, AXIS);
    pen.fillStyle = this.ink;
    pen.fillRect(this.left, AXIS - 1, this.width, 1);
    for (const tick of ticks) {
      const words = this.end - this.begin > 3e6
        ? timeWords(tick / 1000, this.digits + 3).replace("µ", "m") : timeWords(tick, this.digits);
      const at = this.x(tick), wide = pen.measureText(words).width;
      pen.fillRect(at, AXIS - 5, 1, 5);
      if (at - wide / 2 > this.left - 30 && at + wide / 2 < this.width)
        pen.fillText(words, at - wide / 2, AXIS / 2 - 2);
    }
  }

  paintTrack(lane, track) {
    const {trace} = this, {spanStart, spanEnd} = trace;
    const top = lane.top + track.row * lane.row, until = Math.min(this.end, this.now);
    this.columns = trace.states.map(() => []);
    let at = track.from(this.begin);
    while (at < track.last && spanStart[at] < until) {
      const left = Math.max(this.left, this.x(spanStart[at]));
      const right = this.x(Math.min(spanEnd[at], until));
      if (right - left >= COLUMN || spanEnd[at] === spanStart[at]) {
        this.paintSpan(lane, at, left, right, top);
        at++;
      } else {
        const next = Math.min(this.time(left + COLUMN), until);
        this.shareColumn(lane, track, this.time(left), next, left, top);
        at = Math.max(at + 1, track.from(next));
      }
    }
    this.paintColumns();
  }

  // What states had of a column too narrow for spans, one above the other.
  shareColumn(lane, track, begin, end, left, top) {
    let low = top + lane.row - 1;
    track.share(begin, end, (state, ns) => {
      if (this.trace.states[state] === "asleep") return;
      const height = Math.max(1, Math.min(1, ns / (end - begin)) * (lane.row - 2));
      this.columns[state].push(left, low - height, height);
      low -= height;
    });
  }

  paintColumns() {
    const {pen} = this;
    this.columns.forEach((column, state) => {
      if (!column.length) return;
      pen.beginPath();
      for (let at = 0; at < column.length; at += 3)
        pen.rect(column[at], column[at + 1], COLUMN, column[at + 2]);
      pen.fillStyle = this.colours[state];
      pen.fill();
    });
  }

  paintSpan(lane, at, left, right, top) {
    const {pen, trace} = this, state = trace.states[trace.spanState[at]];
    const wide = Math.max(1, right - left), height = lane.row - 2, low = top + lane.row - 1;
    const message = this.messageOfSpan(lane, at);
    pen.globalAlpha = this.selected >= 0 && message >= 0 && message !== this.selected ? 0.35 : 1;
    if (state === "timer") return this.paintTimer(at, left, right, top, height);
    if (state === "asleep") {
      pen.fillStyle = this.colours[trace.spanState[at]];
      pen.fillRect(left, low - 3, wide, 3);
    } else {
      pen.fillStyle = this.fills[trace.spanState[at]];
      pen.fillRect(left, top + 1, wide, height);
      pen.strokeStyle = this.colours[trace.spanState[at]];
      if (wide > 4) pen.strokeRect(left + 0.5, top + 1.5, wide - 1, height - 1);
    }
    if (state === "lost packet") pen.fillText("×", left, top + height / 2);
    if (message === this.selected && message >= 0) {
      pen.fillStyle = this.ink;
      pen.fillRect(left, top, wide, 2);
    }
    this.paintWords(lane.kind === "rank" ? this.callWords(at) || state : this.shortWords(lane, at),
      left, wide, state === "asleep" ? low - 11 : top + 1 + height / 2, state);
    pen.globalAlpha = 1;
  }

  // A timer counts down: a slope that would reach the ground when it runs out.
  paintTimer(at, left, right, top, height) {
    const {pen, trace} = this;
    const due = Math.max(trace.spanUntil[at], trace.spanEnd[at]);
    const begun = this.x(trace.spanStart[at]), ground = top + 1 + height;
    const length = Math.max(1e-9, this.x(due) - begun);
    const level = (x) => ground - Math.max(0, 1 - (x - begun) / length) * height;
    pen.beginPath();
    pen.moveTo(left, ground);
    pen.lineTo(left, level(left));
    pen.lineTo(right, level(right));
    pen.lineTo(right, ground);
    pen.closePath();
    pen.globalAlpha = 0.45;
    pen.fillStyle = this.colours[trace.spanState[at]];
    pen.fill();
    pen.globalAlpha = 1;
    pen.strokeStyle = this.colours[trace.spanState[at]];
    pen.stroke();
    this.paintWords(`timer ${timeWords(due - trace.spanStart[at], 1)}`, left + 2, right - left - 2,
      ground - 6, "timer");
  }

  paintWords(words, left, wide, middle, state) {
    const {pen} = this;
    if (wide < 26 || !words) return;
    const needed = pen.measureText(words).width;
    if (needed > wide - 6) return;
    if (PATTERNS[state] && state !== "timer") {
      pen.fillStyle = this.paper;
      pen.fillRect(left + 2, middle - 6, needed + 4, 12);
    }
    const plain = PATTERNS[state] || state === "asleep";
    pen.fillStyle = plain ? this.ink : this.paper;
    pen.fillText(words, left + 4, middle + 0.5);
  }

  // A call of MPI, with its line: `MPI_Recv, halo.py:12`.
  callWords(at) {
    const [name, place = ""] = this.trace.texts[this.trace.spanText[at]].split(", ");
    return place ? `${name}, ${place.split("/").at(-1)}` : name;
  }

  shortWords(lane, at) {
    const {trace} = this, record = trace.spanRecord[at];
    if (record < 0) return "";
    if (lane.kind === "handlers") {
      const core = trace.agent(record).split(".irq")[1];
      return `${trace.states[trace.spanState[at]]}, core ${core}`;
    }
    return lane.kind === "wire" ? trace.text(record).replace("frame sent: ", "").split(",")[0] : "";
  }

  messageOfSpan(lane, at) {
    if (lane.kind !== "wire" && lane.kind !== "DMA") return -1;
    const record = this.trace.spanRecord[at];
    return record < 0 ? -1 : this.trace.messageOf[record];
  }

  paintDepths(lane) {
    const {pen, trace} = this, [first, last] = lane.depths, {depthTime, depth} = trace;
    lane.most ??= depth.subarray(first, last).reduce((most, each) => Math.max(most, each), 1);
    const ground = lane.top + lane.height, level = (value) => ground - value / lane.most * (lane.height - 3);
    const until = Math.min(this.end, this.now);
    let at = firstAbove(depthTime, this.begin, first, last);
    const dense = firstAbove(depthTime, until, at, last) - at > this.width / 3;
    let value = at > first ? depth[at - 1] : 0;
    pen.beginPath();
    pen.moveTo(this.left, ground);
    pen.lineTo(this.left, level(value));
    while (at < last && depthTime[at] < until) {
      // Of a pixel: up to the most, and to what is left at its end.
      const x = this.x(depthTime[at]), next = firstAbove(depthTime, this.time(x + 1), at, last);
      pen.lineTo(x, level(value));
      let most = depth[at];
      for (; at < next; at++) most = Math.max(most, depth[at]);
      value = depth[at - 1];
      pen.lineTo(x, level(most));
      pen.lineTo(x, level(value));
    }
    const right = Math.min(this.width, this.x(this.now));
    pen.lineTo(right, level(value));
    pen.lineTo(right, ground);
    pen.closePath();
    pen.fillStyle = this.colours[trace.states.indexOf("packet")];
    pen.globalAlpha = dense ? 0.8 : 0.3;
    pen.fill();
    pen.globalAlpha = 1;
    pen.strokeStyle = this.ink;
    if (!dense) pen.stroke();
    pen.fillStyle = this.soft;
    const words = `max ${lane.most}`;
    pen.fillText(words, this.width - pen.measureText(words).width - 4, lane.top + 7);
  }

  paintMarks(lane) {
    const {pen, trace} = this, [first, last] = lane.marks, ground = lane.top + lane.height;
    const until = Math.min(this.end, this.now + 1);
    let at = firstAbove(trace.markTime, this.begin - 1, first, last), free = -9;
    // Too many would hide what lies below them.
    if (firstAbove(trace.markTime, until, at, last) - at > this.width / 3) return;
    pen.fillStyle = pen.strokeStyle = this.ink;
    pen.beginPath();
    const signs = [];
    while (at < last && trace.markTime[at] < until) {
      const x = this.x(trace.markTime[at]);
      const next = Math.max(at + 1, firstAbove(trace.markTime, this.time(x + 1), at, last));
      const here = Array.from(trace.markRecord.subarray(at, next));
      const sign = SIGNS.find((kind) => here.some((record) => trace.kind(record) === kind));
      if (sign || x >= free) {
        signs.push([here.find((record) => trace.kind(record) === sign) ?? here[0], x]);
        free = x + 3;
      } else pen.rect(x, ground - 6, 1, 6);
      at = next;
    }
    pen.fill();
    for (const [record, x] of signs) this.paintMark(lane, record, x);
  }

  paintMark(lane, record, x) {
    const {pen, trace} = this, kind = trace.kind(record), ground = lane.top + lane.height;
    pen.fillStyle = this.ink;
    if (kind === "irq_raised") {
      pen.beginPath();
      pen.moveTo(x, lane.top - 2);
      pen.lineTo(x + 6, lane.top + 11);
      pen.lineTo(x - 6, lane.top + 11);
      pen.fill();
      pen.fillRect(x - 0.75, lane.top + 10, 1.5, ground - lane.top - 10);
    } else if (kind.startsWith("irq_")) {
      pen.strokeRect(x - 3.5, ground - 10.5, 7, 7);
    } else if (kind === "isend" || kind === "received") {
      pen.beginPath();
      pen.arc(x, lane.top + 5, 4, 0, 7);
      if (kind === "isend") pen.fill();
      else {
        pen.fillStyle = this.paper;
        pen.fill();
        pen.stroke();
      }
    } else pen.fillRect(x - 0.75, ground - 7, 1.5, 7);
  }

  // The place of a record, on its own lane.
  place(record) {
    const lane = this.trace.lanes[this.trace.laneOfAgent[this.trace.recordAgent[record]]];
    return lane ? [this.x(this.trace.recordTime[record]), lane.top + 5] : null;
  }

  paintArrows() {
    const {trace} = this, {messageSent, messageReceived, recordTime} = trace;
    const shown = [];
    for (let at = 0; at < messageSent.length && shown.length <= ARROWS_MAX; at++) {
      if (recordTime[messageReceived[at]] >= this.begin && recordTime[messageSent[at]] <= this.end
        && recordTime[messageReceived[at]] <= this.now) shown.push(at);
    }
    if (shown.length <= ARROWS_MAX) for (const at of shown) if (at !== this.selected) this.paintArrow(at);
    if (this.selected >= 0) this.paintArrow(this.selected);
  }

  paintArrow(message) {
    const {pen, trace} = this, own = message === this.selected;
    const from = this.place(trace.messageSent[message]), to = this.place(trace.messageReceived[message]);
    if (!from || !to) return;
    pen.globalAlpha = own ? 1 : 0.5;
    pen.strokeStyle = pen.fillStyle = own ? this.ink : this.soft;
    pen.lineWidth = own ? 2 : 1;
    if (own) this.paintPackets(message);
    pen.beginPath();
    pen.moveTo(...from);
    pen.lineTo(...to);
    pen.stroke();
    const angle = Math.atan2(to[1] - from[1], to[0] - from[0]);
    pen.beginPath();
    pen.moveTo(...to);
    for (const turn of [-0.4, 0.4])
      pen.lineTo(to[0] - 10 * Math.cos(angle + turn), to[1] - 10 * Math.sin(angle + turn));
    pen.fill();
    pen.lineWidth = 1;
    pen.globalAlpha = 1;
  }

  // A message's packets: from the line to DMA, to the handler.
  paintPackets(message) {
    const {pen, trace} = this, places = {};
    const node = trace.lanes[trace.laneOfAgent[trace.recordAgent[trace.messageReceived[message]]]].node;
    for (const lane of trace.lanes)
      if (lane.node === node) places[lane.kind] ??= lane.top + lane.row / 2;
    pen.setLineDash([3, 3]);
    for (let packet = 0; packet < trace.packetMessage.length; packet++) {
      if (trace.packetMessage[packet] !== message) continue;
      const way = [[trace.packetArrived, "wire"], [trace.packetInMemory, "DMA"],
        [trace.packetHandled, "handlers"]];
      const points = way.filter(([records, lane]) => records[packet] >= 0 && lane in places
        && trace.recordTime[records[packet]] <= this.now);
      pen.beginPath();
      points.forEach(([records, lane], at) => {
        const point = [this.x(trace.recordTime[records[packet]]), places[lane]];
        if (at) pen.lineTo(...point);
        else pen.moveTo(...point);
      });
      pen.stroke();
    }
    pen.setLineDash([]);
  }

  paintCursor() {
    const {pen} = this;
    pen.fillStyle = this.ink;
    if (this.cursor >= 0) {
      const x = this.x(this.trace.recordTime[this.cursor]);
      pen.fillRect(x - 0.5, 0, 1, this.total);
      const place = this.place(this.cursor);
      if (place) {
        pen.strokeStyle = this.ink;
        pen.lineWidth = 2;
        pen.beginPath();
        for (const [right, down] of [[0, -8], [8, 0], [0, 8], [-8, 0]])
          pen.lineTo(x + right, place[1] + down);
        pen.closePath();
        pen.stroke();
        pen.lineWidth = 1;
      }
    }
    if (this.now < this.end) pen.fillRect(this.x(this.now) - 1, 0, 2, this.total);
  }

  // -- what lies at a place: {record, span} or null --

  at(x, y, messageFirst = false) {
    const {trace} = this, down = y + this.scroll;
    const lane = trace.lanes.find((each) => down >= each.top - 3 && down < each.top + each.height + 3);
    if (!lane || x < this.left || y < AXIS) return null;
    const mark = lane.marks.length ? this.nearestMark(lane, x, messageFirst) : -1;
    if (mark >= 0) return {lane, record: trace.markRecord[mark], span: -1};
    const time = this.time(x), row = Math.floor((down - lane.top) / lane.row);
    const tracks = lane.tracks.filter((track) => track.row === row).concat(lane.tracks);
    for (const track of tracks) {
      const at = track.from(time);
      if (at < track.last && trace.spanStart[at] <= time)
        return {lane, record: trace.spanRecord[at], span: at};
    }
    return {lane, record: -1, span: -1};
  }

  // Within REACH of a place; with messageFirst marks of a message come before all others.
  nearestMark(lane, x, messageFirst) {
    const {trace} = this, [first, last] = lane.marks;
    const near = firstAbove(trace.markTime, this.time(x), first, last);
    let best = -1, least = Infinity;
    for (let at = Math.max(first, near - 4); at < Math.min(last, near + 4); at++) {
      const away = Math.abs(this.x(trace.markTime[at]) - x);
      const behind = messageFirst && trace.messageOf[trace.markRecord[at]] < 0 ? REACH : 0;
      if (away < REACH && away + behind < least) [best, least] = [at, away + behind];
    }
    return best;
  }

  // How many frames a ring held then.
  depthAt(lane, time) {
    const {trace} = this, [first, last] = lane.depths;
    const at = firstAbove(trace.depthTime, time, first, last) - 1;
    return at >= first ? trace.depth[at] : 0;
  }
}

function stateVariable(state) {
  return `--state-${state.replaceAll(" ", "-")}`;
}

// A fill with a colour and a pattern on paper.
function patternOf(pen, pattern, colour, paper) {
  if (!pattern || pattern === "none") return colour;
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const brush = tile.getContext("2d");
  brush.fillStyle = paper;
  brush.fillRect(0, 0, 6, 6);
  brush.fillStyle = brush.strokeStyle = colour;
  if (pattern === "dots") {
    brush.fillRect(0, 0, 6, 6);
    brush.fillStyle = paper;
    brush.fillRect(1, 1, 2, 2);
    brush.fillRect(4, 4, 2, 2);
  } else if (pattern === "sparse") {
    brush.fillRect(2, 2, 2, 2);
  } else {
    brush.lineWidth = 1.6;
    brush.beginPath();
    for (const shift of [-6, 0, 6]) {
      brush.moveTo(shift, 6);
      brush.lineTo(shift + 6, 0);
      if (pattern === "cross") {
        brush.moveTo(shift, 0);
        brush.lineTo(shift + 6, 6);
      }
    }
    brush.stroke();
  }
  return pen.createPattern(tile, "repeat");
}

// What colours, patterns and signs mean.
function legendOf(place, ...several) {
  const [lanes] = several, {trace} = lanes;
  const used = new Set(several.flatMap((each) => [...new Set(each.trace.spanState)]));
  const items = trace.states.flatMap((state, at) => {
    if (!used.has(at)) return [];
    const sign = document.createElement("canvas");
    sign.width = 48;
    sign.height = 24;
    const pen = sign.getContext("2d");
    pen.scale(2, 2);
    pen.fillStyle = lanes.fills[at];
    pen.strokeStyle = lanes.colours[at];
    if (state === "timer") {
      pen.beginPath();
      pen.moveTo(1, 1);
      pen.lineTo(23, 11);
      pen.lineTo(1, 11);
      pen.closePath();
      pen.globalAlpha = 0.45;
      pen.fill();
      pen.globalAlpha = 1;
      pen.stroke();
    } else if (state === "asleep") pen.fillRect(0, 8, 24, 3);
    else {
      pen.fillRect(0, 0, 24, 12);
      pen.strokeRect(0.5, 0.5, 23, 11);
    }
    return [made("span", "", sign, ` ${state}`)];
  });
  const drawn = new Set(several.flatMap(({trace: each}) =>
    Array.from(each.markRecord, (record) => SIGN_WORDS[each.kind(record)] ?? "│ another record")));
  const signs = [...new Set(Object.values(SIGN_WORDS)), "│ another record"].filter((each) => drawn.has(each));
  if (several.some(({trace: each}) => each.depth.length)) signs.push("▟ packets in a ring");
  if (several.some(({trace: each}) => each.messageSent.length)) signs.push("→ message");
  signs.push("◇ current event");
  place.replaceChildren(...items, ...signs.map((sign) => made("span", sign)));
}
