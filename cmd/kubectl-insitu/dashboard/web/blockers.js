// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// What workloads wait for, since when, and what to do about it.

import {commandLine, h} from './dom.js';
import {commandsFor, known, plural, since, stateInfo} from './words.js';

const shownPods = 3;

// groups puts blockers together that ask for the same: a thousand pods that wait for one
// thing are one line.
export function groups(blockers) {
  const found = new Map();
  for (const blocker of blockers) {
    // Advice names the pod in its commands; that of the first one stands for all.
    const advice = (blocker.advice || '').replaceAll(blocker.pod || '\n', 'POD');
    const key = [blocker.reason, blocker.step, advice, blocker.needsHelp].join('\n');
    const group = found.get(key) || {...blocker, pods: []};
    if (blocker.pod) group.pods.push(blocker.pod);
    if (known(blocker.since) && (!known(group.since) || blocker.since < group.since)) group.since = blocker.since;
    found.set(key, group);
  }
  return [...found.values()].sort((a, b) => Boolean(b.needsHelp) - Boolean(a.needsHelp));
}

export function podNames(pods) {
  const more = pods.length - shownPods;
  return pods.slice(0, more > 1 ? shownPods : pods.length).join(', ') + (more > 1 ? ` and ${more} more` : '');
}

// adviceText is advice without the commands at its end: they follow on lines of their own.
function adviceText(advice) {
  return (advice || '').replace(/:(\s*`[^`]+`[;.]?)+$/, ':').replaceAll('`', '');
}

export function blockerItem(group, workload) {
  const when = since(group.since);
  return h('li', {class: group.needsHelp ? 'blocker help' : 'blocker'},
    h('div', {class: 'cause'},
      h('b', {}, group.reason),
      group.pods.length > 0 && h('span', {class: 'pods', title: group.pods.join(', ')}, podNames(group.pods)),
      group.step && h('span', {class: 'quietly'}, stateInfo(group.step).label),
      when && h('span', {class: 'quietly'}, 'for ', when)),
    h('p', {class: 'message'}, group.message),
    h('p', {class: 'advice'}, adviceText(group.advice)),
    commandsFor(group, workload).map(commandLine));
}

export function blockersSection(workload) {
  const found = groups(workload.blockers || []);
  const helpless = found.filter((group) => group.needsHelp).length;
  const title = helpless ? `${plural(helpless, 'thing')} to do` : `Waits for ${plural(found.length, 'thing')}, and goes on by itself`;
  return [h('h3', {id: 'blockers-title'}, title), h('ul', {class: 'blockers'}, found.map((group) => blockerItem(group, workload)))];
}
