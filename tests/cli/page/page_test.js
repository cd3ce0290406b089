// SPDX-License-Identifier: Apache-2.0
// node page_test.js PUPPETEER BROWSER FOLDER: uses the pages of the folder as people do; exits with 1 and the reason if something does not
// work, for any message on the console or request other than that of the file, and if a function of the script never ran.
'use strict';
const assert = require('node:assert/strict');
const {complaints, settle, open, close, idle} = require('./browser.js');
const [, , puppeteerPath, browserPath, folder] = process.argv;
const puppeteer = require(puppeteerPath);

async function press(page, ...keys) {
  for (const key of keys) await page.keyboard.press(key);
  await settle(page);
}

// Where the middle of a node is in the window.
const place = (page, path) => page.evaluate(path => {
  const {x, y} = find(state.scene, path), box = canvas.getBoundingClientRect();
  return [box.left + (x - camera.x) * camera.k, box.top + (y - camera.y) * camera.k];
}, path);

const pathOf = (page, name, value) => page.evaluate((name, value) => state.scene.nodes.find(node => node[name] === value).path, name, value);
const text = (page, selector) => page.$eval(selector, element => element.textContent);
const heading = page => text(page, '#details h3');
const picture = page => page.evaluate(() => canvas.toDataURL());
const count = page => page.evaluate(() => { let nodes = 0; eachNode(state.scene, node => { nodes += node.kind === 'op'; }); return nodes; });
const visible = (page, selector) => page.$eval(selector, element => !element.hidden);

async function clickNode(page, path, options) {
  await page.mouse.click(...await place(page, path), options);
  await settle(page);
}

async function clickOn(page, selector) {
  await page.$eval(selector, element => element.scrollIntoView());
  await page.click(selector);
  await settle(page);
}

async function search(page, words) {
  await page.keyboard.press('/');
  await page.$eval('#search', input => { input.value = ''; });
  await page.keyboard.type(words);
  await settle(page);
}

async function includes(page, selector, ...parts) {
  const found = await text(page, selector);
  for (const part of parts) assert.ok(found.includes(part), `no ${part} in ${found}`);
}

async function clicks(page) {
  const before = await picture(page);
  await clickNode(page, '0.1');
  assert.equal(await heading(page), 'FULLY_CONNECTED');
  assert.notEqual(await picture(page), before, 'the selected node looks as before');
  await includes(page, '#details', 'fusebox.cpu', 'weights', 'f32[8,8]', 'mean');
  assert.equal(await page.$$eval('#details .histogram', all => all.length), 1);
  await page.mouse.click(600, 790);
  await settle(page);
  assert.equal(await page.evaluate(() => state.selected), null);
}

async function followsLinks(page) {
  await clickNode(page, '0.2');
  await includes(page, '#details', 'When loaded, these nodes replace it', 'TANH');
  await clickOn(page, '#details .value a');  // the operand: to what computes it
  assert.equal(await heading(page), 'FULLY_CONNECTED');
  await clickOn(page, '#details .value:last-of-type a');  // the result: to what reads it
  assert.equal(await heading(page), 'acme.gelu');
  await clickNode(page, '0.0');
  await includes(page, '#details', 'input of main', 'read by FULLY_CONNECTED');
  await clickOn(page, '#details p a');
  assert.equal(await heading(page), 'FULLY_CONNECTED');
  await clickNode(page, '0.5');
  await includes(page, '#details', 'output of main', 'computed by ADD');
  await clickOn(page, '#details p a');
  assert.equal(await heading(page), 'ADD');
}

async function opensAndCloses(page) {
  const before = await count(page);
  await clickNode(page, '0.2', {clickCount: 2});
  assert.equal(await count(page), before + 2, 'the composite does not open');
  assert.equal(await heading(page), 'acme.gelu');
  await press(page, 'Enter');
  assert.equal(await count(page), before, 'the composite does not close');
  await press(page, 'e');
  assert.equal(await count(page), before + 5);
  await press(page, 'c');
  assert.equal(await count(page), before);
}

async function searches(page) {
  await search(page, 'product');
  assert.equal(await page.$$eval('#results li', all => all.length), 1);
  await press(page, 'Enter');
  assert.equal(await heading(page), 'MUL');
  assert.equal(await page.evaluate(() => opened.size), 1, 'the composite around the match is not open');
  await press(page, 'Escape');
  assert.equal(await page.$eval('#search', input => input.value), '');
  await press(page, 'Escape');
  assert.equal(await page.evaluate(() => state.selected), null);
  await search(page, 'no such thing');
  assert.equal(await text(page, '#results'), 'nothing found');
  await search(page, 'tanh');
  assert.equal(await page.evaluate(() => state.matches.size), 1);
  await press(page, 'ArrowDown');
  assert.equal(await page.$$eval('#results li', all => all.findIndex(row => row.className === 'at')), 1);
  await press(page, 'ArrowUp');
  await clickOn(page, '#results li:nth-child(2)');
  assert.equal(await text(page, '#details .name'), 'node 1 of loop_body');
  await page.evaluate(() => canvas.focus());
  await page.waitForFunction(() => document.getElementById('results').hidden);
  await press(page, 'Escape', 'Escape');
  assert.equal(await page.$eval('#search', input => input.value), '');
}

async function walks(page) {
  await press(page, 'c', 'ArrowDown');
  assert.equal(await heading(page), 'x');
  await press(page, 'ArrowDown');
  assert.equal(await heading(page), 'FULLY_CONNECTED');
  await press(page, 'ArrowUp');
  assert.equal(await heading(page), 'x');
  await press(page, 'e');
  await page.evaluate(() => select(3, 0));
  await press(page, 'ArrowRight');
  assert.equal(await heading(page), 'TANH');
  await press(page, 'ArrowLeft');
  assert.equal(await heading(page), 'ADD');
}

async function movesTheCamera(page) {
  await press(page, 'c', 'Escape', 'f');
  const camera = () => page.evaluate(() => ({...camera}));
  const {k} = await camera();
  await press(page, '+', '=');
  assert.ok((await camera()).k > k);
  await press(page, '-');
  const before = await camera();
  await page.mouse.move(300, 700);
  await page.mouse.down();
  await page.mouse.move(302, 700);
  await page.mouse.move(340, 660);
  await page.mouse.up();
  await settle(page);
  assert.ok((await camera()).x < before.x && (await camera()).y > before.y);
  await page.mouse.wheel({deltaY: 100});
  await settle(page);
  assert.ok((await camera()).k < before.k);
  await page.evaluate(() => { camera.x = 1e4; });
  await press(page, 'ArrowDown');  // a node that is out of sight
  const [x] = await place(page, '0.0');
  assert.ok(x > 0 && x < 852);
  await press(page, 'Escape', 'f');
}

async function pointsAt(page) {
  await page.mouse.move(...await place(page, '0.1'));
  await settle(page);
  assert.ok(!await visible(page, '#tip'));
  await page.evaluate(() => zoom(.4));
  await page.mouse.move(...await place(page, '0.2'));
  await page.mouse.move(...await place(page, '0.1'));
  await settle(page);
  assert.equal(await text(page, '#tip'), 'FULLY_CONNECTED\nf32[1,8]');
  await page.evaluate(() => zoom(.3));  // no texts and arrows
  await settle(page);
  await page.mouse.move(1100, 400);
  assert.ok(!await visible(page, '#tip'));
  await page.evaluate(() => openAll());
  await page.evaluate(() => { zoom(.05); });
  await press(page, 'c', 'f');
}

async function hasKeysAndButtons(page) {
  await page.keyboard.press('?');
  assert.ok(await page.$eval('#keys', dialog => dialog.open));
  await press(page, 'Escape');
  assert.ok(!await page.$eval('#keys', dialog => dialog.open));
  await clickOn(page, '#help');
  await page.evaluate(() => escape());
  assert.ok(!await page.$eval('#keys', dialog => dialog.open));
  const before = await count(page);
  await clickOn(page, '#open-all');
  assert.equal(await count(page), before + 5);
  await press(page, 'Enter');  // the button, not the node
  assert.equal(await count(page), before + 5);
  await clickOn(page, '#close-all');
  assert.equal(await count(page), before);
  await clickOn(page, '#fit');
  await clickOn(page, '#theme');
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
  await page.keyboard.down('Control');
  await press(page, 't');
  await page.keyboard.up('Control');
  await press(page, 't');
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'light');
}

async function looks(page) {
  const before = await picture(page);
  await press(page, 't');
  assert.notEqual(await picture(page), before, 'dark looks like light');
  await page.select('#color select', 'who');
  await settle(page);
  await includes(page, '#legend', 'fusebox.cpu');
  await page.setViewport({width: 800, height: 900});
  await settle(page);
  await page.setViewport({width: 1200, height: 800});
  await settle(page);
}

async function showsMemory(page) {
  await press(page, '2');
  assert.ok(await page.$eval('#memory canvas', element => element.getBoundingClientRect().width) > 100);
  const at = await page.evaluate(() => {
    const picture = pictures[0], {box, x, y} = picture.scales(), [, offset, size, first, last] = picture.plan.pieces[0];
    return [box.left + (x(first) + x(last + 1)) / 2, box.top + y(offset + size / 2)];
  });
  await page.mouse.move(...at);
  await settle(page);
  await includes(page, '#tip', ' at offset ');
  await page.mouse.move(600, 70);
  await settle(page);
  assert.ok(!await visible(page, '#tip'));
  await press(page, 'f');  // has no effect here
  await page.mouse.click(...at);
  await settle(page);
  assert.ok(await visible(page, '#graph'));
  assert.notEqual(await page.evaluate(() => state.selected), null);
  await clickOn(page, '#tabs [data-tab=memory]');
  await press(page, '1');
  assert.ok(await visible(page, '#graph'));
}

async function smallModel(page) {
  assert.equal(await page.$('img'), null, 'a name of the model became an element');
  await clicks(page);
  await followsLinks(page);
  await opensAndCloses(page);
  await searches(page);
  await walks(page);
  await movesTheCamera(page);
  await pointsAt(page);
  await hasKeysAndButtons(page);
  await looks(page);
  await showsMemory(page);
}

async function largeModel(page) {
  assert.equal(await count(page), 0, 'a large model does not open closed');
  await clickNode(page, '0.1');
  await includes(page, '#details', 'nodes 0 to', 'ADD');
  await press(page, 'e');
  assert.equal(await count(page), 2000);
  await search(page, 'add_1234');
  await press(page, 'Enter');
  assert.equal(await heading(page), 'ADD');
  await includes(page, '#details', 'block_123/add_1234');
  await search(page, 'add');
  await includes(page, '#results', '500 nodes or more');
  await search(page, 'add_19');
  await includes(page, '#results', '111 nodes');
}

async function foreignModel(page) {
  await includes(page, '#details', 'foreign.tflite', 'made by hand', 'acme.GELU', 'serving_default', 'cannot run', 'acme_notes', '2.9 KiB');
  assert.ok(await visible(page, '#root'));
  await clickNode(page, await pathOf(page, 'label', 'acme.GELU'));
  await includes(page, '#details', 'custom op, node 0 of main', 'Fused', 'acme 1.2.3', 'kept: gelu_body', '[0,1]');
  await page.evaluate(() => select(0, 1));
  await includes(page, '#details', 'scale 0.5, zero point 3');
  await page.evaluate(() => select(0, 2));
  await includes(page, '#details', 'absent', '10 scales along axis 0: 0.25,', ', ...');
  await page.evaluate(() => select(0, 4));
  await includes(page, '#details', 'variable', '1 are not finite', '6 of 8 are 0');
  await press(page, 'ArrowDown', 'Escape');
  await clickNode(page, await pathOf(page, 'kind', 'const'));
  await includes(page, '#details', 'constant of main', 'words', 'yes');
  await page.select('#root select', await page.$eval('#root select option:last-child', option => option.value));
  await settle(page);
  assert.equal(await count(page), 1);
  await search(page, 'dequantize');
  await press(page, 'Enter');  // in the other root
  assert.equal(await heading(page), 'DEQUANTIZE');
  await press(page, 'Escape');
  await press(page, '2');
  await includes(page, '#memory', 'There is no plan');
}

async function allData(page) {
  assert.equal(await page.$eval('#color select', select => select.value), 'time');
  await includes(page, '#legend', '200 ms', 'nodes of a partition');
  await clickNode(page, '0.1');
  await includes(page, '#details', 'Time', '150 ms', '74.8 %', 'of the peak', '50 %', 'partition of');
  await press(page, '3');
  await includes(page, '#profile', 'Mean of 3 runs: 250 ms', '50 GFLOP/s', 'gemm', '50.0 µs', '500.0 µs');
  await clickOn(page, '#profile tr[data-go]');
  assert.equal(await heading(page), 'FULLY_CONNECTED');
  await press(page, '4');
  await includes(page, '#conversion', 'the conversion stopped', 'a note', 'signature train: it has a gradient', '2 of 3 fused', 'acme 1.0', 'axis 0; no scale',
    'not verified', 'GELU', 'mutable', 'block/dense', '0.0012346');
  for (const color of ['kind', 'who', 'time']) {
    await page.select('#color select', color);
    await settle(page);
  }
}

async function keptModel(page) {
  await includes(page, '#legend', '0');
  await press(page, '3');
  await includes(page, '#profile', 'FULLY_CONNECTED');
  await press(page, '4');
  await includes(page, '#conversion', 'small.tflite', 'acme.gelu', 'WHILE');
  await press(page, '1', 'e');
}

async function comparedModel(page) {
  assert.equal(await page.$eval('#color select', select => select.value), 'error');
  await clickNode(page, '0.1');
  await includes(page, '#details', 'differs');
  await press(page, '3');
  assert.ok(await page.$$eval('#errors rect', all => all.length) >= 4);
  await clickOn(page, '#errors tr[data-go]');
  assert.ok(await visible(page, '#graph'));
}

async function equalModel(page) {
  await press(page, '3');
  await includes(page, '#errors', 'No node differs.', 'equal');
  await press(page, '1');
  await includes(page, '#legend', 'within the tolerance');
}

// A camera that glides, and is caught on the way.
async function motion(page) {
  await page.evaluate(() => { fly(0, 0, 2); fly(100, 0, 1); });
  await page.waitForFunction(() => camera.k === 1 && camera.x === 100);
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
}

const PAGES = {small: smallModel, large: largeModel, foreign: foreignModel, all: allData, kept: keptModel, layers: comparedModel, equal: equalModel};

async function visit(browser, name, use, looks) {
  const page = await open(browser, `${folder}${name}.html`, looks);
  assert.deepEqual(complaints, []);
  await use(page);
  await close(page);
}

async function main() {
  const browser = await puppeteer.launch({executablePath: browserPath, headless: true, args: ['--no-sandbox', '--disable-gpu']});
  try {
    for (const [name, use] of Object.entries(PAGES)) await visit(browser, name, use);
    await visit(browser, 'small', motion, {'prefers-color-scheme': 'dark', 'prefers-reduced-motion': 'no-preference'});
    assert.deepEqual(complaints, []);
    const {functions, parts, all} = idle();
    assert.equal(functions.join('\n'), '', 'functions that no page has run');
    console.log(`${all} functions ran; ${parts.length} parts of them did not:\n${parts.join('\n')}`);
  } finally {
    await browser.close();
  }
}

main().catch(error => {
  console.error(error.stack, complaints.join('\n'));
  process.exit(1);
});
