// SPDX-License-Identifier: Apache-2.0
// The user's actions: select, open, search, keys, mouse.

const byId = id => document.getElementById(id);

function rebuild() {
  state.scene = buildScene(state.root, String(state.root));
  redraw();
}

function deselect() {
  state.selected = null;
  showDetails();
  redraw();
}

function selectPath(path, center) {
  state.selected = path;
  const found = find(state.scene, path);
  showDetails();
  if (found && center) center === 'in view' ? keepInView(found) : goTo(found);
  redraw();
}

function goTo({node, x, y}) {
  const {width, height} = size(), k = Math.max(camera.k, .75);
  fly(x - width / 2 / k, y - Math.min(height * .4 / k, height / 2 / k), k, node);
}

function keepInView({node, x, y}) {
  const {width, height} = size();
  const inside = x - node.w / 2 > camera.x && x + node.w / 2 < camera.x + width / camera.k && y - node.h / 2 > camera.y && y + node.h / 2 < camera.y + height / camera.k;
  if (!inside) goTo({node, x, y});
}

// Selects a node of a function, and opens the nodes around it.
function select(f, i) {
  for (const root of [state.root, ...roots()]) {
    const found = pathTo(root, f, i);
    if (!found) continue;
    if (root !== state.root) setRoot(root);
    found.ways.forEach(way => opened.add(way));
    rebuild();
    selectPath(found.path, 'center');
    return;
  }
}

function toggle(path) {
  const found = find(state.scene, path);
  if (!found || !found.node.views) return;
  const screen = {x: (found.x - camera.x) * camera.k, y: (found.y - found.node.h / 2 - camera.y) * camera.k};
  opened.has(path) ? opened.delete(path) : opened.add(path);
  rebuild();
  const moved = find(state.scene, path);  // stays where it was in the window
  ++flight;
  camera.x = moved.x - screen.x / camera.k;
  camera.y = moved.y - moved.node.h / 2 - screen.y / camera.k;
  if (state.selected && !find(state.scene, state.selected)) state.selected = path;
  showDetails();
}

function openAll() {
  for (let round = 0; round < 12; ++round) {
    const before = opened.size;
    eachNode(state.scene, node => { if (node.views && opened.size < 4000) opened.add(node.path); });
    rebuild();
    if (opened.size === before) break;
  }
  fit();
}

function closeAll() {
  opened.clear();
  if (state.selected) state.selected = state.selected.split('.').slice(0, 2).join('.');
  rebuild();
  showDetails();
  fit();
}

function setRoot(root) {
  state.root = root;
  state.selected = null;
  byId('root').querySelector('select').value = String(root);
  rebuild();
  showDetails();
}

// Up and down along edges, left and right within a row.
function step(direction) {
  const found = state.selected && find(state.scene, state.selected);
  if (!found) {
    if (state.scene.nodes.length) selectPath(state.scene.nodes[0].path, 'in view');
    return;
  }
  const {node} = found, scene = node.scene;
  let next = [];
  if (direction === 'down') next = scene.edges.filter(e => e.from === node).map(e => e.to);
  if (direction === 'up') next = scene.edges.filter(e => e.to === node).map(e => e.from);
  if (direction === 'left') next = scene.nodes.filter(n => Math.abs(n.y - node.y) < 4 && n.x < node.x);
  if (direction === 'right') next = scene.nodes.filter(n => Math.abs(n.y - node.y) < 4 && n.x > node.x);
  next.sort((a, b) => Math.abs(a.x - node.x) - Math.abs(b.x - node.x));
  if (next.length) selectPath(next[0].path, 'in view');
}

const search = {rows: [], at: 0};

// One text per node: op, names of its results.
const texts = functions.map(f => f.nodes.map(node => [node.op, node.name, ...node.outputs.map(v => v && v.name)].filter(Boolean).join(' ').toLowerCase()));

function find_(words) {
  const out = [];
  texts.forEach((list, f) => list.forEach((text, i) => {
    if (words.every(word => text.includes(word)) && out.length < 500) out.push([f, i]);
  }));
  return out;
}

function showResults() {
  const query = byId('search').value.trim().toLowerCase(), list = byId('results');
  list.hidden = !query;
  search.rows = query ? find_(query.split(/\s+/)) : [];
  search.at = Math.min(search.at, Math.max(0, search.rows.length - 1));
  const row = ([f, i], k) => el('li', {class: k === search.at ? 'at' : '', onclick: () => { search.at = k; select(f, i); showResults(); }},
    el('b', {}, functions[f].nodes[i].name || functions[f].nodes[i].op), el('span', {}, ((functions[f].nodes[i].outputs.find(Boolean) || {}).name || '').split(';')[0]));
  list.replaceChildren(...search.rows.slice(0, 60).map(row));
  if (!search.rows.length) list.append(el('li', {class: 'none'}, 'nothing found'));
  else if (search.rows.length > 60) list.append(el('li', {class: 'none'}, `${search.rows.length} nodes${search.rows.length === 500 ? ' or more' : ''}`));
  markMatches();
}

function markMatches() {
  const wanted = new Set(search.rows.map(([f, i]) => f + '.' + i));
  state.matches = new Set();
  if (wanted.size) eachNode(state.scene, node => {
    for (const i of coveredBy(node)) if (wanted.has(node.scene.function + '.' + i)) state.matches.add(node.path);
  });
  redraw();
}

function closeSearch() {
  byId('search').value = '';
  search.at = 0;
  showResults();
}

function searchKey(event) {
  if (event.key === 'Escape') {
    closeSearch();
    canvas.focus();
  } else if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
    search.at = Math.max(0, Math.min(search.rows.length - 1, search.at + (event.key === 'ArrowDown' ? 1 : -1)));
    showResults();
    event.preventDefault();
  } else if (event.key === 'Enter' && search.rows.length) {
    select(...search.rows[search.at]);
    search.at = (search.at + 1) % search.rows.length;
    showResults();
  }
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  readColors();
  showLegend();
  showDetails();
  redraw();
  pictures.forEach(picture => picture.draw());
}

function switchTheme() { setTheme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark'); }

function escape() {
  if (byId('keys').open) byId('keys').close();
  else if (byId('search').value) closeSearch();
  else deselect();
}

const KEYS = {
  '/': event => { byId('search').focus(); event.preventDefault(); },
  '?': () => byId('keys').showModal(), Escape: escape, f: fit, '+': () => zoom(1.25), '=': () => zoom(1.25), '-': () => zoom(.8), e: openAll, c: closeAll, t: switchTheme,
  ArrowUp: () => step('up'), ArrowDown: () => step('down'), ArrowLeft: () => step('left'), ArrowRight: () => step('right'),
  Enter: () => state.selected && toggle(state.selected),
};

function keyDown(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches('input, select')) return;
  if (event.target.matches('button') && event.key === 'Enter') return;
  const tab = shown[Number(event.key) - 1];
  if (tab) openTab(tab[0]);
  const action = KEYS[event.key];
  if (!action || (byId('graph').hidden && !'/?tEscape'.includes(event.key))) return;
  if (event.key.startsWith('Arrow')) event.preventDefault();
  action(event);
}

function listenToMouse() {
  let grab = null;
  canvas.addEventListener('pointerdown', event => {
    grab = {x: event.clientX, y: event.clientY, moved: false};
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointermove', event => {
    if (!grab) return hover(event);
    const dx = event.clientX - grab.x, dy = event.clientY - grab.y;
    if (!grab.moved && Math.hypot(dx, dy) < 4) return;
    Object.assign(grab, {x: event.clientX, y: event.clientY, moved: true});
    canvas.classList.add('moving');
    ++flight;
    camera.x -= dx / camera.k;
    camera.y -= dy / camera.k;
    redraw();
  });
  canvas.addEventListener('pointerup', event => {
    if (grab && !grab.moved) click(event);
    grab = null;
    canvas.classList.remove('moving');
  });
  canvas.addEventListener('dblclick', event => { const node = nodeAt(event.clientX, event.clientY); if (node) toggle(node.path); });
  canvas.addEventListener('wheel', event => { event.preventDefault(); zoom(Math.exp(-Math.max(-120, Math.min(120, event.deltaY)) / 420), event.clientX, event.clientY); }, {passive: false});
  canvas.addEventListener('mouseleave', () => tip(''));
}

function click(event) {
  const node = nodeAt(event.clientX, event.clientY);
  canvas.focus();
  node ? selectPath(node.path) : deselect();
}

function hover(event) {
  const node = nodeAt(event.clientX, event.clientY), path = node ? node.path : null;
  if (path !== state.hovered) {
    state.hovered = path;
    canvas.style.cursor = node ? 'pointer' : '';
    redraw();
  }
  const small = node && camera.k < .55 && !node.inside;
  tip(small ? node.label + (node.type ? '\n' + node.type : '') : '', event.clientX, event.clientY);
}

function fillSelects() {
  const all = roots(), root = byId('root'), color = byId('color').querySelector('select');
  root.hidden = all.length < 2;
  root.querySelector('select').append(...all.map(i => el('option', {value: i}, data.views[i].title || 'subgraph ' + i)));
  root.addEventListener('change', event => { setRoot(Number(event.target.value)); fit(); });
  const modes = [['kind', 'kind of op'], runners.length ? ['runner', 'runs on'] : null, data.profile ? ['time', 'time'] : null, data.layers ? ['error', 'difference'] : null].filter(Boolean);
  color.append(...modes.map(([value, name]) => el('option', {value}, name)));
  state.color = data.layers ? 'error' : data.profile ? 'time' : 'kind';
  color.value = state.color;
  color.addEventListener('change', () => { state.color = color.value; showLegend(); redraw(); });
}

function start() {
  byId('file').textContent = data.model.file.split('/').pop();
  byId('file').title = data.model.file;
  fillSelects();
  fillTabs();
  state.root = roots()[0] ?? 0;
  if (data.views.length) rebuild();
  setTheme(matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
  byId('search').addEventListener('input', () => { search.at = 0; showResults(); });
  byId('search').addEventListener('keydown', searchKey);
  byId('search').addEventListener('blur', () => setTimeout(() => { byId('results').hidden = true; }, 150));
  for (const [id, action] of [['open-all', openAll], ['close-all', closeAll], ['fit', fit], ['theme', switchTheme], ['help', KEYS['?']]]) byId(id).addEventListener('click', action);
  document.addEventListener('keydown', keyDown);
  new ResizeObserver(() => { redraw(); pictures.forEach(picture => picture.draw()); }).observe(byId('graph').parentElement);
  listenToMouse();
  if (state.scene) fit();
}

start();
