// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// What became of a workload: a drawing with a lane for each pod, and a list in words.

import {h, keyed, redraw, set, text} from './dom.js';
import {clock, day, plural, stamp, stateInfo} from './words.js';

const laneHeight = 20;
const letterWidth = 6.8;
const firstLanes = 24;
const listed = 200;
const refreshAfter = 700;
const retryAfter = 5000;
const ranges = [['Fit', 0], ['5 min', 300], ['30 min', 1800], ['3 h', 10800]];

export class Timeline {
  element = h('section', {class: 'timeline', 'aria-labelledby': 'timeline-title'});

  #drawing = h('div', {class: 'drawing'});
  #more = h('button', {class: 'quiet', type: 'button', hidden: true});
  #list = h('ol', {class: 'entries', 'aria-label': 'What happened, the latest first'});
  #note = h('p', {class: 'quietly', role: 'status'});
  #ranges;
  #key = '';
  #data = null;
  #range = 0;
  #all = false;
  #timer;

  constructor() {
    this.#ranges = h('div', {class: 'segments', role: 'group', 'aria-label': 'Time shown'},
      ranges.map(([label, seconds]) => h('button', {type: 'button', onclick: () => this.#zoom(seconds)}, label)));
    this.#more.onclick = () => { this.#all = !this.#all; this.#draw(); };
    this.element.append(
      h('div', {class: 'heading'}, h('h3', {id: 'timeline-title'}, 'Timeline'), this.#ranges),
      this.#note, this.#drawing, this.#more,
      h('div', {class: 'scroll tall', tabindex: 0, role: 'region', 'aria-label': 'What happened'}, this.#list));
    new ResizeObserver(() => this.#draw()).observe(this.#drawing);
    setInterval(() => this.#draw(), 5_000);
    this.#zoom(0);
  }

  // follow shows a workload; call it again when it has changed.
  follow(key) {
    if (key !== this.#key) {
      this.#key = key;
      this.#data = null;
      this.#all = false;
      text(this.#note, 'Reading what happened…');
      this.#draw();
      this.#fetch();
      return;
    }
    this.#timer ||= setTimeout(() => this.#fetch(), refreshAfter);
  }

  async #fetch() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const key = this.#key;
    if (!key) return;
    let answer;
    try {
      answer = await fetch('api/events/' + key.split('/').map(encodeURIComponent).join('/'));
      const data = await answer.json();
      if (key !== this.#key) return;
      if (!answer.ok) throw new Error(data.error);
      this.#data = {...data, skew: Date.now() - Date.parse(data.now)};
      text(this.#note, notes(data));
    } catch (error) {
      if (key !== this.#key) return;
      text(this.#note, `The timeline cannot be read: ${error.message}.`);
      if (!answer) this.#timer ||= setTimeout(() => this.#fetch(), retryAfter);
    }
    this.#draw();
  }

  #zoom(seconds) {
    this.#range = seconds;
    [...this.#ranges.children].forEach((button, index) => set(button, 'aria-pressed', String(ranges[index][1] === seconds)));
    this.#draw();
  }

  #draw() {
    const data = this.#data;
    const width = Math.floor(this.#drawing.clientWidth);
    if (!data || !width) {
      this.#drawing.replaceChildren();
      keyed(this.#list, [], () => '', () => null);
      this.#more.hidden = true;
      return;
    }
    const now = Date.now() - data.skew;
    const lanes = lanesOf(data);
    const shown = this.#all ? lanes : lanes.slice(0, firstLanes + 1);
    this.#more.hidden = lanes.length <= firstLanes + 1;
    text(this.#more, this.#all ? 'Show fewer pods' : `Show all ${plural(lanes.length - 1, 'pod')} that changed`);
    const from = this.#range ? now - this.#range * 1000 : fit(data, now);
    this.#drawing.replaceChildren(draw(shown, {from, now, width}));
    redraw(this.#list, entriesOf(data).map((entry) => entry.key), () => entriesOf(data).map(entryItem));
  }
}

function notes(data) {
  const words = [];
  if (data.eventsError) words.push(`Events of Kubernetes cannot be read: ${data.eventsError}.`);
  if (data.forgotten) words.push(`${plural(data.forgotten, 'older step')} not shown anymore.`);
  words.push(`Steps are those seen since ${clock(data.started)}, when the dashboard was started.`);
  return words.join(' ');
}

const stepOfSpan = (span) => (span.pod && span.state === 'Settled' && !span.updated ? 'Old' : span.state);

// lanesOf returns the lane of the workload, then those of pods that something happened to,
// what happened last first where there are many.
function lanesOf(data) {
  const lanes = new Map([['', {pod: '', spans: [], events: []}]]);
  const lane = (pod) => lanes.get(pod) || lanes.set(pod, {pod, spans: [], events: []}).get(pod);
  for (const span of data.spans) lane(span.pod || '').spans.push(span);
  for (const event of data.events) if (lanes.has(event.pod || '')) lane(event.pod || '').events.push(event);
  const [own, ...pods] = lanes.values();
  const happened = pods.filter((one) => one.spans.length > 1 || one.spans.some((span) => span.state !== 'Settled' || span.to));
  const collator = new Intl.Collator('en', {numeric: true});
  return [own, ...happened.sort((a, b) => collator.compare(a.pod, b.pod))];
}

// fit is when the drawing begins so that all that happened is in it.
function fit(data, now) {
  const times = data.spans.filter((span) => span.to || (span.pod && span.state !== 'Settled')).map((span) => Date.parse(span.to && span.state === 'Settled' ? span.to : span.from));
  const first = Math.min(now - 60_000, ...times);
  return first - (now - first) * 0.04;
}

function draw(lanes, {from, now, width}) {
  const longest = Math.max(...lanes.map((lane) => lane.pod.length), 5);
  const label = Math.min(Math.max(84, width * 0.24), longest * letterWidth + 16);
  const scale = (time) => label + Math.max(0, Math.min(1, (time - from) / (now - from))) * (width - label - 8);
  const height = 26 + lanes.length * laneHeight;
  const svg = h('svg', {
    width, height, viewBox: `0 0 ${width} ${height}`, role: 'img',
    'aria-label': `Steps of ${plural(lanes.length - 1, 'pod')} from ${clock(from)} to ${clock(now)}. The list below says the same in words.`,
  });
  for (const time of ticks(from, now, (width - label) / 90)) {
    const x = scale(time);
    svg.append(h('line', {class: 'tickline', x1: x, x2: x, y1: 18, y2: height}),
      h('text', {class: 'ticktext', x, y: 12, 'text-anchor': x > width - 32 ? 'end' : 'middle'}, tickLabel(time, now - from)));
  }
  lanes.forEach((lane, index) => svg.append(drawLane(lane, 24 + index * laneHeight, {label, scale, from, now})));
  return svg;
}

// tickLabel tells a time as far as the drawing needs it: the day at midnight, seconds only
// where minutes are wide.
function tickLabel(time, length) {
  const at = new Date(time);
  if (length > 43_200_000 && at.getHours() === 0 && at.getMinutes() === 0) return day(at);
  return clock(time, length < 300_000);
}

function drawLane(lane, y, {label, scale, from, now}) {
  const group = h('g', {class: lane.pod ? 'lane' : 'lane own'},
    h('text', {class: 'lanename', x: label - 8, y: y + 12, 'text-anchor': 'end'}, shorten(lane.pod || 'phase', label)));
  for (const span of lane.spans) {
    const to = span.to ? Date.parse(span.to) : now;
    if (to < from) continue;
    const [x, end] = [scale(Date.parse(span.from)), scale(to)];
    const step = lane.pod ? stepOfSpan(span) : span.state;
    const info = lane.pod ? stateInfo(step) : {letter: '', label: step};
    const width = Math.max(2, end - x);
    group.append(h('g', {class: `span ${lane.pod ? 's' : 'p'}-${step}`},
      h('title', {}, `${lane.pod || 'phase'}: ${info.label} from ${clock(span.from)}${span.to ? ' to ' + clock(span.to) : ''} ${span.message || ''}`),
      h('rect', {x, y: y + 2, width: Math.max(1, width - 1), height: laneHeight - 5, rx: 2}),
      width > info.label.length * 7 + 10 ? h('text', {x: x + 5, y: y + 13}, info.label)
        : width > 13 ? h('text', {x: x + width / 2, y: y + 13, 'text-anchor': 'middle'}, info.letter) : null));
  }
  for (const event of lane.events) {
    const time = Date.parse(event.time);
    if (time < from) continue;
    const x = scale(time);
    group.append(h('path', {class: event.warning ? 'event warning' : 'event', d: `M${x - 4.5} ${y - 2} h9 l-4.5 7z`},
      h('title', {}, `${clock(event.time)} ${event.reason}: ${event.message}`)));
  }
  return group;
}

// shorten leaves the end of a name, which tells pods apart.
function shorten(name, width) {
  const room = Math.floor((width - 12) / letterWidth);
  return name.length <= room ? name : '…' + name.slice(1 - room);
}

const steps = [5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400, 604800];

function ticks(from, now, count) {
  const step = (steps.find((seconds) => (now - from) / 1000 / seconds <= count) || steps.at(-1)) * 1000;
  const found = [];
  const zone = new Date(now).getTimezoneOffset() * 60_000; // Noon is that of the clock on the wall.
  for (let time = Math.ceil((from - zone) / step) * step + zone; time <= now; time += step) found.push(time);
  return found;
}

function entriesOf(data) {
  const last = new Map();
  const entries = [];
  for (const span of data.spans) {
    const before = last.get(span.pod);
    last.set(span.pod, span);
    if (!before && (span.state === 'Settled' || !span.pod)) continue;
    const step = stepOfSpan(span);
    entries.push({
      key: `${span.from} ${span.pod} ${step}`, time: span.from, pod: span.pod, step, before: before && stepOfSpan(before),
      isNew: before && before.uid !== span.uid, reason: span.reason, message: span.message,
    });
  }
  for (const event of data.events) {
    entries.push({...event, key: `${event.time} ${event.pod} ${event.reason} ${event.count}`, isEvent: true});
  }
  return entries.sort((a, b) => Date.parse(b.time) - Date.parse(a.time)).slice(0, listed);
}

function entryItem(entry) {
  const who = entry.pod || 'workload';
  return h('li', {class: entry.warning ? 'warning' : ''},
    h('time', {datetime: entry.time, title: new Date(entry.time).toLocaleString()}, stamp(entry.time)),
    h('span', {class: 'who', title: who}, who),
    entry.isEvent ? h('b', {}, entry.warning && h('span', {class: 'glyph'}, '! '), entry.reason, entry.count > 1 && ` ×${entry.count}`) : transition(entry),
    h('span', {class: 'says'}, entry.isEvent ? entry.message : [entry.reason, entry.message].filter(Boolean).join(': '),
      entry.reporter && h('small', {}, ` ${entry.reporter}`)));
}

function transition(entry) {
  const label = (step) => (entry.pod ? stateInfo(step).label : step);
  return h('span', {class: 'transition'},
    entry.before && entry.before !== entry.step && h('span', {class: 'quietly'}, label(entry.before), ' → '),
    h('b', {class: entry.pod ? `step s-${entry.step}` : `phase p-${entry.step}`}, label(entry.step)), entry.isNew && ' as a new pod');
}
