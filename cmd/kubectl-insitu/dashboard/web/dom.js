// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Makes and updates elements. Text is always text: nothing here reads markup.

const svgTags = new Set(['svg', 'g', 'rect', 'line', 'text', 'title', 'path', 'circle']);

// h makes an element: h('a', {class: 'x', href: '#', onclick: f}, 'text', child).
// A property that is null, undefined or false is left out.
export function h(tag, props, ...children) {
  const element = svgTags.has(tag)
    ? document.createElementNS('http://www.w3.org/2000/svg', tag)
    : document.createElement(tag);
  for (const [name, value] of Object.entries(props || {})) {
    set(element, name, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child != null && child !== false));
  return element;
}

// set changes a property only if it differs, so that nothing is announced or drawn again
// without need.
export function set(element, name, value) {
  if (name.startsWith('on')) {
    element[name] = value;
  } else if (value == null || value === false) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
  } else {
    const text = value === true ? '' : String(value);
    if (element.getAttribute(name) !== text) element.setAttribute(name, text);
  }
}

// text changes the text of an element if it differs.
export function text(element, value) {
  if (element.textContent !== value) element.textContent = value;
}

const nodes = new WeakMap();

// keyed makes the children of parent those of items, in their order. An item that was
// there before, by its key, keeps its element, and with it focus and selection.
export function keyed(parent, items, keyOf, make, update) {
  const before = nodes.get(parent) || new Map();
  const after = new Map();
  for (const item of items) {
    const key = keyOf(item);
    const element = before.get(key) || make(item);
    update?.(element, item);
    after.set(key, element);
  }
  for (const [key, element] of before) {
    if (!after.has(key)) element.remove();
  }
  let at = parent.firstChild;
  for (const element of after.values()) {
    if (element === at) {
      at = at.nextSibling;
    } else {
      parent.insertBefore(element, at);
    }
  }
  nodes.set(parent, after);
}

const drawn = new WeakMap();

// redraw fills an element again if what it is drawn from differs.
export function redraw(element, data, build) {
  const signature = JSON.stringify(data);
  if (drawn.get(element) === signature) return;
  drawn.set(element, signature);
  element.replaceChildren(...[build()].flat(Infinity).filter((child) => child != null && child !== false));
}

// copyButton copies a command, and says so.
export function copyButton(command) {
  const button = h('button', {class: 'copy', type: 'button', 'aria-label': 'Copy: ' + command, title: 'Copy'}, 'Copy');
  button.onclick = async () => {
    let done = 'Copied';
    try {
      await navigator.clipboard.writeText(command);
    } catch {
      done = 'Select it and copy';
    }
    text(button, done);
    announce(done);
    setTimeout(() => text(button, 'Copy'), 1600);
  };
  return button;
}

// commandLine shows a command with a button that copies it.
export function commandLine(command) {
  return h('span', {class: 'command'}, h('code', {}, command), copyButton(command));
}

// announce tells screen readers.
export function announce(message) {
  document.getElementById('announce').textContent = message;
}
