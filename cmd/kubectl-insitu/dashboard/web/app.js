// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Puts the page together: what is chosen in the address, what the stream says, the theme.

import {announce, h, redraw, set, text} from './dom.js';
import {blockersSection, groups} from './blockers.js';
import {List} from './list.js';
import {overview, overviewData} from './overview.js';
import {Plan} from './plan.js';
import {Pods} from './pods.js';
import {Stream} from './stream.js';
import {Timeline} from './timeline.js';
import {clock, compare, hashOf, known, tick} from './words.js';
import {head, headData} from './workload.js';

const byId = (id) => document.getElementById(id);
const main = byId('main');

const list = new List();
const view = {
  overview: h('div', {class: 'overview'}),
  workload: h('div', {class: 'workload', hidden: true}),
  head: h('section', {class: 'head', 'aria-label': 'Workload'}),
  blockers: h('section', {'aria-labelledby': 'blockers-title'}),
  gone: h('p', {class: 'problem', hidden: true}),
  pods: new Pods(),
  timeline: new Timeline(),
  plan: new Plan(),
};
view.workload.append(view.gone, view.head, view.blockers, view.pods.element, view.timeline.element, view.plan.element);
main.append(view.overview, view.workload);

let chosen = '';
const told = new Map();
const stream = new Stream(update);

function route() {
  const parts = location.hash.replace(/^#\/?/, '').split('/').map(decodeURIComponent);
  chosen = parts.length === 4 ? parts.join('/') : '';
  document.body.dataset.view = chosen ? 'workload' : 'overview';
  update(null);
  scrollTo({top: 0});
}

// update draws what changed; keys are those of the workloads that did, null for all.
function update(keys) {
  drawConnection();
  if (keys && !keys.length) return;
  const workloads = [...stream.workloads.values()].sort(compare);
  list.show(workloads, chosen);
  announcePhases();
  view.overview.hidden = Boolean(chosen) || !stream.isComplete;
  view.workload.hidden = !chosen || !stream.isComplete;
  if (!stream.isComplete) return;
  if (!chosen) {
    document.title = 'Insitu';
    redraw(view.overview, [overviewData(workloads), workloads.length], () => overview(workloads));
  } else if (!keys || keys.includes(chosen)) {
    drawWorkload(stream.workloads.get(chosen));
  }
}

function drawWorkload(workload) {
  view.gone.hidden = Boolean(workload);
  for (const element of [view.head, view.blockers, view.pods.element, view.timeline.element, view.plan.element]) element.hidden = !workload;
  if (!workload) {
    const [, kind, namespace, name] = chosen.split('/');
    text(view.gone, `There is no ${kind} ${name} in namespace ${namespace} (anymore).`);
    document.title = `${name} · Insitu`;
    return;
  }
  document.title = `${workload.phase} · ${workload.name} · Insitu`;
  redraw(view.head, headData(workload), () => head(workload));
  const found = groups(workload.blockers || []);
  view.blockers.hidden = !found.length;
  redraw(view.blockers, found, () => blockersSection(workload));
  view.pods.show(workload.pods);
  view.timeline.follow(chosen);
  view.plan.show(workload);
}

// announcePhases tells who changed phase, but not what was so when the page was opened.
function announcePhases() {
  const news = [];
  for (const [key, workload] of stream.workloads) {
    const before = told.get(key);
    if (before && before !== workload.phase) {
      news.push(`${workload.name} in ${workload.namespace} is now ${workload.phase}${workload.reason ? ': ' + workload.reason : ''}`);
    }
    told.set(key, workload.phase);
  }
  if (news.length) announce(news.slice(0, 3).join('. ') + (news.length > 3 ? `, and ${news.length - 3} more` : ''));
}

function drawConnection() {
  const {state, error, since} = stream.connection;
  let [word, message] = ['Live', ''];
  if (stream.server === 'Lost') {
    [word, message] = ['No contact', 'The dashboard’s server does not answer. Is kubectl insitu dashboard still running? If it was started again, open the address that it printed. Trying again.'];
  } else if (stream.server === 'Connecting') {
    word = 'Connecting';
  } else if (state === 'Connecting') {
    word = 'Reading the cluster';
  } else if (state === 'Lost') {
    const when = known(since) ? ` What you see is as of ${clock(since)}.` : '';
    [word, message] = ['Cluster lost', `The cluster cannot be read: ${error}.${stream.isComplete ? when : ''} Trying again every few seconds.`];
  }
  text(byId('live'), word);
  set(byId('live'), 'class', message ? 'live lost' : word === 'Live' ? 'live' : 'live waiting');
  byId('banner').hidden = !message;
  text(byId('banner'), message);
}

async function about() {
  try {
    const {cluster, namespace} = await (await fetch('api/about')).json();
    text(byId('cluster'), [cluster, namespace ? `namespace ${namespace}` : 'all namespaces'].filter(Boolean).join(' · '));
  } catch {
    // The stream says that the server does not answer.
    setTimeout(about, 2000);
  }
}

const themes = [['', 'Theme: system'], ['light', 'Theme: light'], ['dark', 'Theme: dark']];

function applyTheme(theme) {
  const at = Math.max(0, themes.findIndex(([name]) => name === theme));
  set(document.documentElement, 'data-theme', themes[at][0] || null);
  text(byId('theme'), themes[at][1]);
  byId('theme').onclick = () => {
    const next = themes[(at + 1) % themes.length][0];
    localStorage.setItem('theme', next);
    applyTheme(next);
  };
}

byId('skip').onclick = (event) => {
  event.preventDefault();
  main.focus();
};
addEventListener('keydown', (event) => {
  if (event.key !== 'Escape' || !chosen || event.target.closest('input, select')) return;
  const link = byId('list').querySelector(`a[href="${CSS.escape(hashOf(chosen))}"]`);
  location.hash = '#/';
  link?.focus();
});
addEventListener('hashchange', route);
setInterval(() => {
  tick();
  view.pods.follow();
}, 1000);
applyTheme(localStorage.getItem('theme') || '');
about();
route();
