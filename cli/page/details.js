// SPDX-License-Identifier: Apache-2.0
// Colors of nodes, and the panel beside the graph. All texts of the model become text nodes.

function el(tag, attributes, ...children) {
  const out = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === 'onclick') out.addEventListener('click', value);
    else if (name === 'style') out.style.cssText = value;
    else if (value !== undefined && value !== null) out.setAttribute(name, value);
  }
  for (const child of children.flat()) if (child !== null && child !== undefined) out.append(child);
  return out;
}

function svg(tag, attributes, ...children) {
  const out = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) out.setAttribute(name, value);
  out.append(...children);
  return out;
}

const KINDS = [
  ['products', /CONV|FULLY_CONNECTED|MATMUL|DOT|EMBEDDING|EINSUM/],
  ['recurrent and custom', /LSTM|RNN|GRU|SVDF|COMPOSITE|^CUSTOM|^custom/],
  ['control flow', /^(WHILE|IF|CALL|CALL_ONCE)$|VAR_HANDLE|VARIABLE|HASHTABLE/],
  ['quantization', /QUANTIZE|^CAST$/],
  ['reductions and pools', /POOL|^MEAN$|SUM|REDUCE|SOFTMAX|NORM|ARG_|TOPK|CUMSUM/],
  ['moves of data', /RESHAPE|TRANSPOSE$|SLICE|SPLIT|CONCAT|PACK|PAD|GATHER|SQUEEZE|EXPAND|TILE|REVERSE|SHAPE|FILL|SCATTER|BATCH_TO|SPACE_TO|TO_SPACE|TO_BATCH|BROADCAST_TO|WHERE|SELECT/],
];
const KIND_COLORS = [0, 4, 5, 6, 3, 2];
const ELEMENTWISE = 'element-wise';

function kindOf(op) {
  const at = KINDS.findIndex(([, pattern]) => pattern.test(op));
  return at < 0 ? {name: ELEMENTWISE, color: 1} : {name: KINDS[at][0], color: KIND_COLORS[at]};
}

function nodeData(node) {
  return node.kind === 'op' ? functions[node.scene.function].nodes[node.node] : null;
}

function runOf(f, i) { return (data.runs[f] || [])[i] || {}; }

// Runner names in the order of their first node, for colors.
const runners = [];
for (const rows of data.runs)
  for (const row of rows)
    for (const one of [row, ...(row.loaded || [])])
      if (one.runner && !runners.includes(one.runner)) runners.push(one.runner);

function runnerColor(runner) { return colors.kinds[runners.indexOf(runner) % colors.kinds.length]; }

// Rows of the profile by "function.node".
const timed = new Map();
for (const row of data.profile ? data.profile.rows : [])
  for (const [f, i] of row.at || []) timed.set(f + '.' + i, [...timed.get(f + '.' + i) || [], row]);

// Milliseconds of one run that a node takes; of a partition as a whole, in each of its nodes.
function timeOf(f, i) { return (timed.get(f + '.' + i) || []).reduce((sum, row) => sum + row.avg_ms, 0); }
const slowest = Math.max(1e-9, ...[...timed.keys()].map(key => timeOf(...key.split('.'))));

// The worst row of `compare --layers` by "function.node".
const layers = new Map();
for (const layer of data.layers ? data.layers.rows : [])
  for (const [f, i] of layer.at || []) {
    const key = f + '.' + i, old = layers.get(key);
    if (layer.compared && (!old || errorOf(layer) > errorOf(old) || (old.equal && !layer.equal))) layers.set(key, layer);
  }

// Relative to the rms of the values; JSON has no infinity.
function errorOf(layer) { return layer.error ?? Infinity; }

function milliseconds(ms) { return ms >= 100 ? ms.toFixed(0) + ' ms' : ms >= 1 ? ms.toFixed(2) + ' ms' : (ms * 1000).toFixed(1) + ' µs'; }
function bytes(n) { return n < 1024 ? n + ' B' : n < 1048576 ? (n / 1024).toFixed(1) + ' KiB' : n < 1073741824 ? (n / 1048576).toFixed(1) + ' MiB' : (n / 1073741824).toFixed(2) + ' GiB'; }
function short(x) { return typeof x !== 'number' ? String(x) : Number.isInteger(x) ? String(x) : String(+x.toPrecision(5)); }

function brief(x) { return String(+x.toPrecision(3)); }

// The nodes of a function that a drawn node stands for.
function* coveredBy(node) {
  if (node.kind === 'op') yield node.node;
  if (node.kind === 'group') for (let i = node.begin; i < node.end; ++i) yield i;
}

// Returns the op that replaces a composite when the model is loaded, after an arrow, or '' if none does.
function fusedNote(f, i) {
  const site = runOf(f, i).site;
  const op = site && site.fused && site.emitted.toSorted((a, b) => b.length - a.length)[0];
  return op ? '→ ' + op : '';
}

function errorPaint(layer) {
  if (!layer) return {};
  const note = 'error ' + brief(errorOf(layer));
  return layer.equal ? {bar: colors.kinds[6], note} : {bar: colors.bad, fill: `rgba(${colors.heat}, .24)`, note};
}

function paintOf(node) {
  const f = node.scene.function;
  if (node.kind !== 'op' && node.kind !== 'group') return {};
  if (state.color === 'time') {
    let ms = 0;
    for (const i of coveredBy(node)) ms += timeOf(f, i);
    const part = Math.min(1, ms / slowest);
    return {fill: ms ? `rgba(${colors.heat}, ${(.06 + .72 * Math.sqrt(part)).toFixed(3)})` : null, note: ms ? milliseconds(ms) : ''};
  }
  if (state.color === 'error') return errorPaint([...coveredBy(node)].map(i => layers.get(f + '.' + i)).filter(Boolean).sort((a, b) => a.equal - b.equal || errorOf(b) - errorOf(a))[0]);
  if (node.kind === 'group') return {};
  const note = fusedNote(f, node.node);
  if (state.color === 'runner') {
    const run = runOf(f, node.node), runner = run.runner || (run.loaded && run.loaded[0].runner);
    return {bar: runner && runnerColor(runner), note};
  }
  return {bar: colors.kinds[kindOf(nodeData(node).op).color], note};
}

function key(color, label) { return el('span', {class: 'key'}, el('i', {style: 'background:' + color}), label); }

function showLegend() {
  const legend = document.getElementById('legend');
  legend.replaceChildren();
  if (state.color === 'time') {
    legend.append(el('span', {class: 'key'}, '0', el('span', {class: 'ramp', style: `background:linear-gradient(90deg, rgba(${colors.heat},.06), rgba(${colors.heat},.5) 40%, rgba(${colors.heat},.78))`}), milliseconds(slowest)));
    if (data.profile.rows.some(row => (row.at || []).length > 1)) legend.append(el('span', {}, 'nodes of a partition show the time of the partition'));
  } else if (state.color === 'runner') {
    legend.append(...runners.map(runner => key(runnerColor(runner), runner)));
  } else if (state.color === 'error') {
    legend.append(key(colors.kinds[6], 'within the tolerance'), key(colors.bad, 'differs'));
  } else {
    const used = new Map();
    for (const f of functions) for (const node of f.nodes) { const k = kindOf(node.op); used.set(k.name, k.color); }
    legend.append(...[...used].map(([name, color]) => key(colors.kinds[color], name)));
  }
}

function table(rows, kind = 'kv') {
  return el('table', {class: kind}, el('tbody', {}, rows.map(row => el('tr', {}, row.map(cell => el('td', {}, cell))))));
}

function typeText(value) { return value.dtype + (value.shape ? '[' + value.shape.map(d => d < 0 ? '?' : d).join(',') + ']' : '[*]'); }

function histogram(stats) {
  const most = Math.max(...stats.bins), n = stats.bins.length;
  const bars = stats.bins.map((count, i) => svg('rect', {x: i * 10 + 1, y: 60 - 58 * count / most, width: 8.6, height: Math.max(count ? 1 : 0, 58 * count / most), rx: 1.5}));
  return svg('svg', {class: 'histogram', viewBox: `0 0 ${n * 10} 60`, preserveAspectRatio: 'none', fill: 'var(--k1)'}, ...bars);
}

function quantText(quant) {
  const more = quant.count > quant.scales.length ? ', ...' : '';
  const scales = quant.scales.map(short).join(', ') + more;
  if (quant.count === 1) return `scale ${scales}, zero point ${quant.zero_points[0] ?? 0}`;
  return `${quant.count} scales along axis ${quant.axis}: ${scales}`;
}

function statistics(stats) {
  const out = [];
  if (stats.bins) {
    out.push(histogram(stats));
    out.push(el('div', {class: 'stats'}, el('span', {}, brief(stats.min)), el('span', {}, `mean ${brief(stats.mean)}, deviation ${brief(stats.deviation)}`), el('span', {}, brief(stats.max))));
    if (stats.zeros) out.push(el('div', {class: 'stats'}, `${stats.zeros} of ${stats.count} are 0`));
    if (stats.not_finite) out.push(el('div', {class: 'stats bad'}, `${stats.not_finite} are not finite`));
  }
  if (stats.first && (!stats.bins || stats.count <= 16)) out.push(el('div', {class: 'path'}, stats.first));
  return out;
}

// One operand or result: name, type, and what is known of it; `go` selects what it is connected with.
function valueRow(f, value, go) {
  if (!value) return el('div', {class: 'value muted'}, 'absent');
  const known = data.values[f][value.id] || {};
  const name = value.name || '#' + value.id;
  const tags = [value.constant ? 'constant' : null, value.variable ? 'variable' : null].filter(Boolean);
  return el('div', {class: 'value'},
    el('div', {class: 'row'}, el('span', {class: 'l', title: name}, go ? el('a', {onclick: go}, name) : name), tags.map(tag => el('span', {class: 'tag'}, tag)), el('span', {class: 't'}, typeText(value))),
    known.quant ? el('div', {class: 'path'}, quantText(known.quant)) : null,
    value.constant ? statistics(known) : null);
}

function producer(f, id) { return functions[f].nodes.findIndex(node => node.outputs.some(v => v && v.id === id)); }
function readers(f, id) { return functions[f].nodes.map((node, i) => node.inputs.some(v => v && v.id === id) ? i : -1).filter(i => i >= 0); }

function optionText(value) { return typeof value === 'object' ? JSON.stringify(value) : String(value); }

function whoSection(f, i) {
  const run = runOf(f, i), out = [];
  const badge = runner => el('span', {class: 'runner'}, el('i', {class: 'dot', style: 'background:' + runnerColor(runner)}), runner);
  if (run.runner) out.push(badge(run.runner));
  if (run.reason) out.push(...run.reason.split('; ').map(reason => el('p', {class: 'reason'}, reason)));
  if (run.loaded) {
    out.push(el('p', {class: 'reason'}, 'When loaded, these nodes replace it:'));
    out.push(table(run.loaded.map(row => [row.op, el('span', {title: row.reason}, row.runner)])));
  }
  if (run.site) {
    if (run.site.reason) out.push(el('p', {class: 'reason'}, run.site.reason));
    for (const rule of run.site.rules) out.push(el('p', {class: 'reason'}, `${rule.rule} of ${rule.plugin}: ${rule.outcome}${rule.reasons.length ? ': ' + rule.reasons.join('; ') : ''}`));
  }
  if (!out.length && data.reason) out.push(el('p', {class: 'note bad'}, data.reason));
  return out.length ? [el('h2', {}, 'Runs on'), ...out] : [];
}

function timeSection(f, i) {
  const rows = timed.get(f + '.' + i) || [];
  if (!rows.length) return [];
  const all = data.profile.nodes_ms || data.profile.run_ms || 1;
  const lines = rows.flatMap(row => [
    [row.at.length > 1 ? `partition of ${row.at.length} nodes` : 'time', milliseconds(row.avg_ms)], ['share', (100 * row.avg_ms / all).toFixed(1) + ' %'],
    row.calls > 1 ? ['calls per run', short(row.calls)] : null,
    row.flops && row.avg_ms ? ['GFLOP/s', (row.flops * row.calls / row.avg_ms / 1e6).toFixed(1)] : null,
    row.of_peak ? ['of the peak', (100 * row.of_peak).toFixed(0) + ' %'] : null].filter(Boolean));
  return [el('h2', {}, 'Time'), table(lines)];
}

function errorSection(f, i) {
  const layer = layers.get(f + '.' + i);
  if (!layer) return [];
  return [el('h2', {}, 'Difference'), table([
    ['result', el('span', {class: layer.equal ? 'good' : 'bad'}, layer.equal ? 'equal' : 'differs')], ['error', brief(errorOf(layer))],
    ['largest difference', brief(layer.max_absolute ?? Infinity)], ['compared with', layer.other], ...(layer.where ? [['where', layer.where]] : [])])];
}

// The nodes that a fused op replaced when the file was imported.
function replacedSection(nodes) {
  if (!nodes) return [];
  const counts = {};
  for (const node of nodes) counts[node.op] = (counts[node.op] || 0) + 1;
  return [el('h2', {}, 'Instead of', el('small', {}, nodes.length + ' nodes')), opBars(counts), el('details', {}, el('summary', {}, 'Names'), table(nodes.map(node => [node.op, node.name])))];
}

function fusedSection(node) {
  if (!node.fused) return [];
  return [el('h2', {}, 'Fused'), table([['composite', node.fused.composite], ['rule', node.fused.rule], ['plugin', node.fused.plugin + ' ' + node.fused.version], ['body', node.body ? 'kept: ' + node.body : 'not in the file']]), ...replacedSection(node.fused.replaces)];
}

function nodeDetails(drawn) {
  const f = drawn.scene.function, i = drawn.node, node = functions[f].nodes[i];
  const first = node.outputs.find(Boolean);
  const title = node.op.replace(/^CUSTOM:/, '');
  const options = Object.entries(node.options || {});
  const jump = target => () => target >= 0 && select(f, target);
  return [
    el('h3', {}, node.name || title),
    el('div', {class: 'name'}, `${node.name ? node.op + ', ' : node.op.startsWith('CUSTOM:') ? 'custom op, ' : ''}node ${i} of ${functions[f].name}`),
    ...whoSection(f, i), ...timeSection(f, i), ...errorSection(f, i), ...fusedSection(node),
    ...(options.length ? [el('h2', {}, 'Options'), table(options.map(([name, value]) => [name, optionText(value)]))] : []),
    el('h2', {}, 'Inputs'), ...node.inputs.map(v => valueRow(f, v, v && producer(f, v.id) >= 0 ? jump(producer(f, v.id)) : null)),
    el('h2', {}, 'Outputs'), ...node.outputs.map(v => valueRow(f, v, v && readers(f, v.id).length ? jump(readers(f, v.id)[0]) : null)),
    ...(first ? [] : [el('p', {class: 'muted'}, 'none')]),
  ];
}

function valueDetails(drawn) {
  const f = drawn.scene.function;
  const all = [...functions[f].inputs, ...functions[f].outputs, ...functions[f].nodes.flatMap(n => [...n.inputs, ...n.outputs])];
  const value = all.find(v => v && v.id === drawn.value);
  const what = {in: 'input', out: 'output', const: 'constant'}[drawn.kind];
  const from = producer(f, drawn.value), to = readers(f, drawn.value);
  return [
    el('h3', {}, drawn.label || what), el('div', {class: 'name'}, `${what} of ${drawn.scene.view.title}`),
    el('h2', {}, 'Value'), value ? valueRow(f, value) : null,
    from >= 0 ? el('p', {}, 'computed by ', el('a', {onclick: () => select(f, from)}, functions[f].nodes[from].op)) : null,
    to.length ? el('p', {}, 'read by ', ...to.slice(0, 20).flatMap((i, k) => [k ? ', ' : '', el('a', {onclick: () => select(f, i)}, functions[f].nodes[i].op)])) : null,
  ];
}

function groupDetails(drawn) {
  const f = drawn.scene.function, counts = {};
  for (const i of coveredBy(drawn)) counts[functions[f].nodes[i].op] = (counts[functions[f].nodes[i].op] || 0) + 1;
  return [el('h3', {}, drawn.label), el('div', {class: 'name'}, `nodes ${drawn.begin} to ${drawn.end - 1} of ${functions[f].name}`), el('h2', {}, 'Ops'), opBars(counts)];
}

function opBars(counts) {
  const sorted = Object.entries(counts).sort((a, b) => b[1] - a[1]), most = sorted.length ? sorted[0][1] : 1;
  return el('table', {class: 'bars'}, el('tbody', {}, sorted.map(([op, count]) => el('tr', {}, el('td', {}, op), el('td', {class: 'n'}, String(count)),
    el('td', {}, el('span', {class: 'bar', style: `width:${100 * count / most}%;background:var(--k${kindOf(op).color + 1})`}))))));
}

function overview() {
  const model = data.model, nodes = functions.reduce((n, f) => n + f.nodes.length, 0);
  const runs = {};
  for (const rows of data.runs) for (const row of rows) if (row.runner) runs[row.runner] = (runs[row.runner] || 0) + 1;
  return [
    el('h3', {}, model.file.split('/').pop()), model.description ? el('div', {class: 'name'}, model.description) : null,
    data.reason ? el('p', {class: 'note bad'}, data.reason) : null,
    ...(data.notices || []).map(notice => el('p', {class: 'note'}, notice)),
    el('h2', {}, 'Model'), table([['nodes', String(nodes)], ['subgraphs', String(functions.length)], ['constants', bytes(functions.reduce((n, f) => n + f.constant_bytes, 0))],
      data.memory.length ? ['arena', bytes(data.memory.reduce((n, plan) => n + plan.bytes, 0))] : null, model.appended_bytes ? ['appended', bytes(model.appended_bytes)] : null].filter(Boolean)),
    ...(model.signatures.length ? [el('h2', {}, 'Signatures'), ...model.signatures.map(signature)] : []),
    ...(Object.keys(runs).length ? [el('h2', {}, 'Runs on', el('small', {}, 'nodes')), table(Object.entries(runs).sort((a, b) => b[1] - a[1]).map(([runner, n]) => [el('span', {class: 'key'}, el('i', {style: 'background:' + runnerColor(runner)}), runner), String(n)]))] : []),
    el('h2', {}, 'Ops'), opBars(model.ops),
    ...(model.metadata.length ? [el('h2', {}, 'Metadata'), table(model.metadata.map(m => [m.name, bytes(m.bytes)]))] : []),
    el('p', {class: 'muted', style: 'margin-top:26px'}, 'fusebox ' + data.version),
  ];
}

function signature(s) {
  return el('div', {class: 'value'}, el('div', {class: 'row'}, el('span', {class: 'l'}, s.key), el('span', {class: s.can_run ? 'good' : 'bad'}, s.can_run ? 'runs' : 'cannot run')),
    el('div', {class: 'path'}, `(${s.inputs.join(', ')}) → (${s.outputs.join(', ')})`), s.reason ? el('p', {class: 'reason'}, s.reason) : null);
}

function showDetails() {
  const panel = document.getElementById('details'), found = state.selected && find(state.scene, state.selected);
  const content = !found ? overview() : found.node.kind === 'op' ? nodeDetails(found.node) : found.node.kind === 'group' ? groupDetails(found.node) : valueDetails(found.node);
  panel.replaceChildren(...content.filter(Boolean));
  panel.scrollTop = 0;
}
