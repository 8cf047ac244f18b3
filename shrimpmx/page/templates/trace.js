// A trace that packed_trace.py has packed, and how to read times.

const ARRAYS = {u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, i4: Int32Array, f8: Float64Array};

// The bytes of base64 text that were compressed by gzip.
async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

// The first index in sorted numbers, from `low` to `high`, whose number is above `least`.
function firstAbove(numbers, least, low, high) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] > least) high = middle;
    else low = middle + 1;
  }
  return low;
}

// Spans of one row of a lane, which do not overlap, in order of time.
class Track {
  constructor(trace, first, last, stateCount) {
    Object.assign(this, {trace, first, last});
    this.shares = Array.from({length: stateCount}, () => null);
    const {spanStart, spanEnd, spanState} = trace;
    for (let at = first; at < last; at++) {
      this.shares[spanState[at]] ??= new Float64Array(last - first + 1);
    }
    this.states = this.shares.flatMap((share, state) => (share ? [state] : []));
    for (let at = first; at < last; at++) {
      for (const state of this.states) {
        const share = this.shares[state], own = spanState[at] === state;
        share[at - first + 1] = share[at - first] + (own ? spanEnd[at] - spanStart[at] : 0);
      }
    }
  }

  // The first span that ends after a time.
  from(time) {
    return firstAbove(this.trace.spanEnd, time, this.first, this.last);
  }

  // Calls take(state, ns) with how long each state lasted between two times.
  share(begin, end, take) {
    const {spanStart, spanEnd, spanState} = this.trace;
    const low = this.from(begin);
    let high = low;
    for (let step = 1; high < this.last && spanStart[high] < end; step *= 2) {
      high = Math.min(this.last, high + step);
    }
    high = firstAbove(spanStart, end, low, high);
    for (const state of this.states) {
      const share = this.shares[state];
      let sum = share[high - this.first] - share[low - this.first];
      if (low < high && spanState[low] === state) sum -= Math.max(0, begin - spanStart[low]);
      if (low < high && spanState[high - 1] === state) sum -= Math.max(0, spanEnd[high - 1] - end);
      if (sum > 0) take(state, sum);
    }
  }
}

class Trace {
  constructor(buffer) {
    const length = new DataView(buffer).getUint32(0, true);
    Object.assign(this, JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length))));
    let offset = 8 + length;
    for (const [name, [type, count]] of Object.entries(this.columns)) {
      const array = new ARRAYS[type](buffer, offset, count);
      this[name] = array;
      offset += Math.ceil(array.byteLength / 8) * 8;
    }
    this.end = this.recordTime.length ? this.recordTime[this.recordTime.length - 1] : 1;
    this.numberLanes();
    this.numberMessages();
  }

  numberLanes() {
    const {spanLane, spanRow, markLane, depthLane} = this;
    for (const lane of this.lanes) Object.assign(lane, {tracks: [], marks: [], depths: []});
    for (let first = 0, at = 1; at <= spanLane.length; at++) {
      if (at < spanLane.length && spanLane[at] === spanLane[first] && spanRow[at] === spanRow[first])
        continue;
      const track = new Track(this, first, at, this.states.length);
      track.row = spanRow[first];
      this.lanes[spanLane[first]].tracks.push(track);
      first = at;
    }
    this.markTime = Float64Array.from(this.markRecord, (record) => this.recordTime[record]);
    for (const [lanes, key] of [[markLane, "marks"], [depthLane, "depths"]]) {
      for (let first = 0, at = 1; at <= lanes.length; at++) {
        if (at < lanes.length && lanes[at] === lanes[first]) continue;
        if (lanes.length) this.lanes[lanes[first]][key] = [first, at];
        first = at;
      }
    }
    this.laneOfAgent = this.agents.map(() => -1);
    for (let at = 0; at < markLane.length; at++) {
      this.laneOfAgent[this.recordAgent[this.markRecord[at]]] = markLane[at];
    }
    for (let at = 0; at < spanLane.length; at++) {
      const lane = this.lanes[spanLane[at]];
      if (this.spanRecord[at] >= 0 && (lane.kind === "rank" || lane.kind === "handlers"))
        this.laneOfAgent[this.recordAgent[this.spanRecord[at]]] = spanLane[at];
    }
  }

  numberMessages() {
    const none = () => new Int32Array(this.recordTime.length).fill(-1);
    this.messageOf = none();
    this.packetOf = none();
    for (let packet = 0; packet < this.packetSent.length; packet++) {
      for (const way of ["packetSent", "packetArrived", "packetInMemory", "packetHandled"]) {
        const record = this[way][packet];
        if (record < 0) continue;
        this.packetOf[record] = packet;
        this.messageOf[record] = this.packetMessage[packet];
      }
    }
    this.messageSent.forEach((sent, message) => {
      this.messageOf[sent] = this.messageOf[this.messageReceived[message]] = message;
    });
  }

  took(message) {
    return this.recordTime[this.messageReceived[message]] - this.recordTime[this.messageSent[message]];
  }

  text(record) {
    return this.texts[this.recordText[record]];
  }

  kind(record) {
    return this.kinds[this.recordKind[record]];
  }

  agent(record) {
    return this.agents[this.recordAgent[record]] ?? `agent${this.recordAgent[record]}`;
  }

  // Its stages: pairs of name and record.
  stagesOf(message) {
    const found = [];
    for (let at = firstAbove(this.stageMessage, message - 1, 0, this.stageMessage.length);
      at < this.stageMessage.length && this.stageMessage[at] === message; at++) {
      found.push([this.stages[this.stageName[at]], this.stageRecord[at]]);
    }
    return found;
  }
}

// ns in words: `12.345 µs`.
function timeWords(ns, decimals = 3) {
  const digits = Math.max(0, Math.min(3, decimals));
  return `${(ns / 1000).toLocaleString("en", {
    minimumFractionDigits: digits, maximumFractionDigits: digits, useGrouping: false,
  })} µs`;
}

// An element with a text, and whatever it has inside: text is never taken for HTML.
function made(name, text = "", ...inside) {
  const element = document.createElement(name);
  if (text !== "") element.textContent = text;
  element.append(...inside);
  return element;
}

function tableOf(heads, rows) {
  const head = made("tr", "", ...heads.map((each) => {
    const cell = made("th", each);
    cell.scope = "col";
    return cell;
  }));
  const body = rows.map((row) => made("tr", "", ...row.map((each) => made("td", each))));
  return made("table", "", made("thead", "", head), made("tbody", "", ...body));
}
