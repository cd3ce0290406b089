// SPDX-License-Identifier: Apache-2.0
// The scene to draw: the layouts of the data, with room for the nodes that are open. A scene is one placed view; the scene of an
// open node is inside of that node. Positions are centers, relative to the scene.
'use strict';

const data = JSON.parse(document.getElementById('data').textContent);
const functions = data.model.subgraphs;
const opened = new Set();  // paths of open nodes

const PAD = 14, GAP = 26, CAPTION = 26;

// A map of one axis that adds room at places: [[where, how much]]. Points at the same place share it.
function stretch(places) {
  const groups = [];
  for (const [at, by] of places.sort((a, b) => a[0] - b[0])) {
    const last = groups[groups.length - 1];
    if (last && at - last.low < 6) {
      last.high = at;
      last.by = Math.max(last.by, by);
    } else {
      groups.push({low: at, high: at, by});
    }
  }
  const map = x => {
    let moved = x;
    for (const g of groups) {
      if (x < g.low) break;
      moved += x <= g.high ? g.by / 2 : g.by;
    }
    return moved;
  };
  return {map, sum: groups.reduce((sum, g) => sum + g.by, 0)};
}

// An open node: itself to the left, the graphs that it runs or replaced beside it. A group is a frame only.
function openNode(node) {
  const group = node.kind === 'group';
  let x = group ? PAD / 2 : PAD + node.w0 + GAP, height = 0;
  node.inside = node.views.map((view, i) => {
    const scene = buildScene(view, node.path + (i ? '+' + i : ''));
    const part = {scene, title: node.names[i], x, y: group ? CAPTION : PAD + CAPTION};
    x += scene.width + PAD;
    height = Math.max(height, scene.height);
    return part;
  });
  node.w = x - (group ? PAD / 2 : 0);
  node.h = group ? CAPTION + height + PAD / 2 : 2 * PAD + CAPTION + height;
}

// The map of a view's positions that has room for its open nodes. Only the row of an open node becomes wider, to both sides; all
// rows below move down.
function roomFor(nodes) {
  const tall = [], rows = new Map();
  for (const node of nodes.filter(n => n.inside)) {
    tall.push([node.y, Math.max(0, node.h - node.h0)]);
    const places = rows.get(node.y) || [];
    rows.set(node.y, [...places, [node.x, Math.max(0, node.w - node.w0)]]);
  }
  const wide = [...rows].map(([y, places]) => {
    const half = Math.max(...nodes.filter(n => n.y === y).map(n => n.h0)) / 2 + 1;
    const {map, sum} = stretch(places);
    return {y, half, map: x => map(x) - sum / 2};
  });
  const mapY = stretch(tall).map;
  return ([x, y]) => {
    const row = wide.find(r => Math.abs(r.y - y) <= r.half);
    return [row ? row.map(x) : x, mapY(y)];
  };
}

function buildScene(index, path) {
  const view = data.views[index];
  const scene = {index, path, view, function: view.function};
  scene.nodes = view.nodes.map((source, i) => {
    const node = {...source, w0: source.w, h0: source.h, index: i, scene, path: path + '.' + i, inside: null};
    if (node.views && opened.has(node.path)) openNode(node);
    return node;
  });
  const map = roomFor(scene.nodes);
  for (const node of scene.nodes) [node.x, node.y] = map([node.x, node.y]);
  scene.edges = view.edges.map(edge => placeEdge(scene, edge, map));
  const most = list => list.reduce((a, b) => Math.max(a, b), 0);
  const left = -most([...scene.nodes.map(n => n.w / 2 + PAD - n.x), ...scene.edges.map(e => PAD - e.left)]);
  for (const node of scene.nodes) node.x -= left;
  for (const edge of scene.edges) {
    for (const point of edge.points) point[0] -= left;
    edge.left -= left;
    edge.right -= left;
  }
  scene.width = most([view.width - left, ...scene.nodes.map(n => n.x + n.w / 2 + PAD), ...scene.edges.map(e => e.right + PAD)]);
  scene.height = map([0, view.height + 1])[1] - 1;
  return scene;
}

function placeEdge(scene, edge, map) {
  const from = scene.nodes[edge.from], to = scene.nodes[edge.to];
  const points = [[from.x, from.y + from.h / 2]];
  for (let i = 2; i + 2 < edge.points.length; i += 2) points.push(map([edge.points[i], edge.points[i + 1]]));
  points.push([to.x, to.y - to.h / 2]);
  const xs = points.map(p => p[0]);
  return {from, to, value: edge.value, points, left: Math.min(...xs), right: Math.max(...xs), top: points[0][1], bottom: points[points.length - 1][1]};
}

// Calls visit(node, x, y) for all nodes that can be seen, with their absolute centers.
function eachNode(scene, visit, x = 0, y = 0) {
  for (const node of scene.nodes) {
    visit(node, x + node.x, y + node.y);
    if (!node.inside) continue;
    for (const part of node.inside)
      eachNode(part.scene, visit, x + node.x - node.w / 2 + part.x, y + node.y - node.h / 2 + part.y);
  }
}

// The absolute center of a node of the current scene, by path.
function find(scene, path) {
  let found = null;
  eachNode(scene, (node, x, y) => { if (node.path === path) found = {node, x, y}; });
  return found;
}

// The node of a view that is, or has inside, a node of the view's function.
function indexOf(view, node) {
  return view.nodes.findIndex(n => n.kind === 'op' ? n.node === node : n.kind === 'group' && n.begin <= node && node < n.end);
}

// Where a node of a function first occurs below a view: the paths to open on the way, and its own.
function pathTo(root, wanted, node) {
  const seen = new Set();
  const walk = (index, path, ways) => {
    const view = data.views[index];
    if (view.function === wanted) {
      const at = indexOf(view, node);
      if (at < 0) return null;
      const inner = path + '.' + at;
      if (view.nodes[at].kind === 'op') return {ways, path: inner};
      return walk(view.nodes[at].views[0], inner, [...ways, inner]);
    }
    if (seen.has(index)) return null;
    seen.add(index);
    for (let i = 0; i < view.nodes.length; ++i) {
      const views = view.nodes[i].views || [], inner = path + '.' + i;
      for (let k = 0; k < views.length; ++k) {
        const found = walk(views[k], inner + (k ? '+' + k : ''), [...ways, inner]);
        if (found) return found;
      }
    }
    return null;
  };
  return walk(root, String(root), []);
}

// The subgraphs that no node of another one refers to.
function roots() {
  const inner = new Set();
  for (const view of data.views) for (const node of view.nodes) for (const v of node.views || []) inner.add(v);
  const all = data.views.map((_, i) => i).filter(i => !inner.has(i));
  return all.length ? all : data.views.length ? [0] : [];
}
