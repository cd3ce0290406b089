// SPDX-License-Identifier: Apache-2.0
// Draws the scene. Only what is in the window is drawn, and less of it the smaller it is.

const canvas = document.querySelector('#graph canvas');
const context = canvas.getContext('2d');
const camera = {x: 0, y: 0, k: 1};  // the model's point in the window's upper left corner; pixels per unit
const state = {root: 0, scene: null, selected: null, hovered: null, color: 'kind', matches: new Set()};
let colors = {}, dirty = false;

function readColors() {
  const style = getComputedStyle(document.documentElement);
  const of = name => style.getPropertyValue('--' + name).trim();
  colors = {};
  for (const name of ['ground', 'panel', 'raised', 'inset', 'line', 'edge', 'text', 'muted', 'accent', 'accent-soft', 'heat', 'sans', 'mono', 'bad'])
    colors[name] = of(name);
  colors.kinds = [1, 2, 3, 4, 5, 6, 7, 8].map(i => of('k' + i));
}

function redraw() {
  if (dirty) return;
  dirty = true;
  requestAnimationFrame(() => { dirty = false; draw(); });
}

function size() {
  const box = canvas.getBoundingClientRect(), ratio = window.devicePixelRatio || 1;
  const width = Math.round(box.width * ratio), height = Math.round(box.height * ratio);
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
  }
  return {width: box.width, height: box.height, ratio};
}

function draw() {
  const {width, height, ratio} = size();
  if (!width || !state.scene) return;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.setTransform(ratio * camera.k, 0, 0, ratio * camera.k, -camera.x * camera.k * ratio, -camera.y * camera.k * ratio);
  const window_ = {left: camera.x, top: camera.y, right: camera.x + width / camera.k, bottom: camera.y + height / camera.k};
  drawScene(state.scene, 0, 0, window_);
}

function drawScene(scene, x, y, seen) {
  const local = {left: seen.left - x, right: seen.right - x, top: seen.top - y, bottom: seen.bottom - y};
  context.save();
  context.translate(x, y);
  drawEdges(scene, local);
  for (const node of scene.nodes) {
    const left = node.x - node.w / 2, top = node.y - node.h / 2;
    if (left > local.right || left + node.w < local.left || top > local.bottom || top + node.h < local.top) continue;
    if (node.inside) drawOpen(node, left, top, local);
    else drawNode(node, left, top, node.w, node.h);
  }
  context.restore();
}

function trace(edge, plain) {
  const points = edge.points;
  context.moveTo(points[0][0], points[0][1]);
  for (let i = 1; i < points.length; ++i) {
    const [x0, y0] = points[i - 1], [x1, y1] = points[i];
    if (plain || Math.abs(x1 - x0) < 1) context.lineTo(x1, y1);
    else context.bezierCurveTo(x0, y0 + (y1 - y0) * .55, x1, y1 - (y1 - y0) * .55, x1, y1);
  }
}

function arrow(edge) {
  const [x, y] = edge.points[edge.points.length - 1];
  context.moveTo(x, y);
  context.lineTo(x - 3.6, y - 7);
  context.lineTo(x + 3.6, y - 7);
  context.closePath();
}

function strokeEdges(edges, color, width) {
  context.beginPath();
  for (const edge of edges) trace(edge, camera.k < .2);
  context.strokeStyle = color;
  context.lineWidth = width;
  context.stroke();
  if (camera.k < .4) return;
  context.beginPath();
  for (const edge of edges) arrow(edge);
  context.fillStyle = color;
  context.fill();
}

function drawEdges(scene, seen) {
  const plain = [], chosen = [];
  for (const edge of scene.edges) {
    if (edge.left > seen.right || edge.right < seen.left || edge.top > seen.bottom || edge.bottom < seen.top) continue;
    const selected = state.selected && (edge.from.path === state.selected || edge.to.path === state.selected);
    (selected ? chosen : plain).push(edge);
  }
  const thin = Math.max(1.2, .7 / camera.k);
  strokeEdges(plain, colors.edge, thin);
  if (chosen.length) strokeEdges(chosen, colors.accent, Math.max(2, 1.2 / camera.k));
}

function rounded(x, y, w, h, r) {
  context.beginPath();
  context.roundRect(x, y, w, h, r);
}

// An open node: its frame, itself, and what is inside.
function drawOpen(node, left, top, seen) {
  const group = node.kind === 'group', selected = node.path === state.selected;
  rounded(left, top, node.w, node.h, 10);
  context.fillStyle = group ? colors.inset : colors.panel;
  context.fill();
  context.strokeStyle = selected ? colors.accent : colors.line;
  context.lineWidth = selected ? 2 : 1;
  context.stroke();
  if (group) text(node.label + '  ⊟', left + 12, top + 17, '600 11.5px ' + colors.sans, colors.muted, node.w - 24);
  else drawCard(node, left, top);
  for (const part of node.inside) {
    const x = left + part.x, y = top + part.y;
    if (!group) {
      rounded(x - 1, y - CAPTION + 4, part.scene.width + 2, part.scene.height + CAPTION - 2, 8);
      context.fillStyle = colors.ground;
      context.fill();
      context.strokeStyle = colors.line;
      context.lineWidth = 1;
      context.stroke();
      text(part.title, x + 11, y - 4, '600 11.5px ' + colors.sans, colors.muted, part.scene.width - 22);
    }
    if (part.scene.height * camera.k > 14) drawScene(part.scene, x, y, seen);
  }
}

// The op of an open node, left of its graphs, with a line to them.
function drawCard(node, left, top) {
  const y = top + PAD + CAPTION + 8, x = left + PAD;
  context.beginPath();
  context.setLineDash([4, 4]);
  context.moveTo(x + node.w0, y + node.h0 / 2);
  context.lineTo(x + node.w0 + GAP - 1, y + node.h0 / 2);
  context.strokeStyle = colors.edge;
  context.lineWidth = 1.4;
  context.stroke();
  context.setLineDash([]);
  drawNode(node, x, y, node.w0, node.h0);
}

function text(string, x, y, font, color, width, align = 'left') {
  if (camera.k < .28) return;
  context.font = font;
  context.fillStyle = color;
  context.textAlign = align;
  let shown = string;
  if (context.measureText(shown).width > width) {
    let low = 0, high = Math.min(shown.length, 200);
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (context.measureText(shown.slice(0, middle) + '…').width <= width) low = middle;
      else high = middle - 1;
    }
    shown = shown.slice(0, low) + '…';
  }
  context.fillText(shown, x, y);
}

function outline(node) {
  if (node.path === state.selected) return [colors.accent, 2.2];
  if (state.matches.has(node.path)) return [colors.kinds[1], 2];
  return [node.path === state.hovered ? colors.muted : colors.line, 1];
}

function drawNode(node, left, top, w, h) {
  const chip = node.kind === 'in' || node.kind === 'out' || node.kind === 'const';
  const paint = paintOf(node), [border, thick] = outline(node);
  if (node.kind === 'group' || node.views) {  // a second sheet below
    rounded(left + 4, top + 4, w, h, 7);
    context.fillStyle = colors.panel;
    context.fill();
    context.strokeStyle = border;
    context.lineWidth = 1;
    context.stroke();
  }
  rounded(left, top, w, h, chip ? h / 2 : 7);
  context.fillStyle = chip ? colors.inset : colors.raised;
  context.fill();
  if (paint.fill) {
    context.fillStyle = paint.fill;
    context.fill();
  }
  context.strokeStyle = border;
  context.lineWidth = thick;
  context.stroke();
  if (paint.bar && !chip) {
    context.save();
    context.clip();
    context.fillStyle = paint.bar;
    context.fillRect(left, top, camera.k < .28 ? w * .3 : 5, h);
    context.restore();
  }
  const room = w - 20 - (node.views ? 20 : 0);
  if (chip) {
    text(node.label || node.kind, left + w / 2, top + h / 2 + 4, '500 11.5px ' + colors.sans, colors.muted, w - 18, 'center');
    return;
  }
  text(node.label, left + 14, top + 17, '600 12px ' + colors.sans, colors.text, room);
  text(paint.note || node.type, left + 14, top + 31.5, '10.5px ' + colors.mono, paint.fill ? colors.text : colors.muted, room);
  if (node.views) text(node.inside ? '⊟' : '⊞', left + w - 19, top + 18, '13px ' + colors.sans, colors.muted, 20);
}

// The innermost node at a point of the window.
function nodeAt(clientX, clientY) {
  const box = canvas.getBoundingClientRect();
  const px = camera.x + (clientX - box.left) / camera.k, py = camera.y + (clientY - box.top) / camera.k;
  let hit = null;
  eachNode(state.scene, (node, x, y) => {
    if (Math.abs(px - x) <= node.w / 2 && Math.abs(py - y) <= node.h / 2) hit = node;
  });
  return hit;
}

let flight = 0;
// Moves the camera, in a short glide.
function fly(x, y, k) {
  const from = {...camera}, start = performance.now(), id = ++flight;
  const still = matchMedia('(prefers-reduced-motion: reduce)').matches;
  const step = now => {
    if (id !== flight) return;
    const t = still ? 1 : Math.min(1, (now - start) / 180), e = 1 - (1 - t) ** 3;
    camera.k = from.k * (k / from.k) ** e;
    camera.x = from.x + (x - from.x) * e;
    camera.y = from.y + (y - from.y) * e;
    draw();
    if (t < 1) requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
}

// Shows a box of the model: all of it if that stays readable, else its upper part.
function show(left, top, width, height, most = 1.15, least = 0) {
  const {width: w, height: h} = size();
  if (!w || !h) return;
  const k = Math.max(least, Math.min(most, (w - 40) / width, (h - 90) / height));
  const y = height * k > h - 50 ? top - 14 / k : top + height / 2 - (h - 44) / 2 / k;
  fly(left + width / 2 - w / 2 / k, y, k);
}

function fit() { show(0, 0, state.scene.width, state.scene.height); }

function zoom(factor, clientX, clientY) {
  const box = canvas.getBoundingClientRect();
  const x = clientX === undefined ? box.width / 2 : clientX - box.left;
  const y = clientY === undefined ? box.height / 2 : clientY - box.top;
  const k = Math.min(4, Math.max(.004, camera.k * factor));
  ++flight;
  camera.x += x / camera.k - x / k;
  camera.y += y / camera.k - y / k;
  camera.k = k;
  redraw();
}
