// SPDX-License-Identifier: Apache-2.0
// node page_test.js PUPPETEER BROWSER SMALL.html LARGE.html LAYERS.html: uses the pages as people do; exits with 1 and the reason if something
// does not work, and for any message on the console or request other than that of the file.
'use strict';
const assert = require('node:assert/strict');
const [, , puppeteerPath, browserPath, small, large, layers] = process.argv;
const puppeteer = require(puppeteerPath);

const complaints = [];

async function open(browser, file) {
  const page = await browser.newPage();
  await page.setViewport({width: 1200, height: 800});
  await page.emulateMediaFeatures([{name: 'prefers-color-scheme', value: 'light'}, {name: 'prefers-reduced-motion', value: 'reduce'}]);
  page.on('console', message => complaints.push(`console: ${message.text()}`));
  page.on('pageerror', error => complaints.push(`error: ${error.message}`));
  page.on('dialog', dialog => { complaints.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on('request', request => { if (request.url() !== 'file://' + file) complaints.push(`request: ${request.url()}`); });
  await page.goto('file://' + file);
  await settle(page);
  return page;
}

// Two frames, after which the camera stands still.
const settle = page => page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))));

async function press(page, key) {
  await page.keyboard.press(key);
  await settle(page);
}

// Where the middle of a node is in the window.
const place = (page, path) => page.evaluate(path => {
  const {x, y} = find(state.scene, path), box = canvas.getBoundingClientRect();
  return [box.left + (x - camera.x) * camera.k, box.top + (y - camera.y) * camera.k];
}, path);

const heading = page => page.$eval('#details h3', element => element.textContent);
const picture = page => page.evaluate(() => canvas.toDataURL());
const count = page => page.evaluate(() => { let nodes = 0; eachNode(state.scene, node => { nodes += node.kind === 'op'; }); return nodes; });

async function clicks(page) {
  const before = await picture(page);
  await page.mouse.click(...await place(page, '0.1'));
  await settle(page);
  assert.equal(await heading(page), 'FULLY_CONNECTED');
  assert.notEqual(await picture(page), before, 'the selected node looks as before');
  const details = await page.$eval('#details', element => element.textContent);
  for (const part of ['fusebox.cpu', 'weights', 'f32[8,8]', 'mean']) assert.ok(details.includes(part), `no ${part} in ${details}`);
  assert.equal(await page.$$eval('#details .histogram', all => all.length), 1);
  await page.mouse.click(600, 790);
  await settle(page);
  assert.equal(await page.evaluate(() => state.selected), null);
}

async function opensAndCloses(page) {
  const before = await count(page);
  await page.mouse.click(...await place(page, '0.2'), {clickCount: 2});
  await settle(page);
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
  await page.keyboard.press('/');
  await page.keyboard.type('product');
  await settle(page);
  assert.equal(await page.$$eval('#results li', all => all.length), 1);
  await press(page, 'Enter');
  assert.equal(await heading(page), 'MUL');
  assert.equal(await page.evaluate(() => opened.size), 1, 'the composite around the match is not open');
  await press(page, 'Escape');
  assert.equal(await page.$eval('#search', input => input.value), '');
  await press(page, 'Escape');
  assert.equal(await page.evaluate(() => state.selected), null);
}

async function walks(page) {
  await press(page, 'c');
  await press(page, 'ArrowDown');
  assert.equal(await heading(page), 'x');
  await press(page, 'ArrowDown');
  assert.equal(await heading(page), 'FULLY_CONNECTED');
  await press(page, 'ArrowUp');
  assert.equal(await heading(page), 'x');
  const k = await page.evaluate(() => camera.k);
  await press(page, '+');
  assert.ok(await page.evaluate(() => camera.k) > k);
  await press(page, '-');
  await press(page, 'f');
  await page.keyboard.press('?');
  assert.ok(await page.$eval('#keys', dialog => dialog.open));
  await press(page, 'Escape');
  assert.ok(!await page.$eval('#keys', dialog => dialog.open));
}

async function looks(page) {
  const before = await picture(page);
  await press(page, 't');
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
  assert.notEqual(await picture(page), before, 'dark looks like light');
  await page.select('#color select', 'runner');
  await settle(page);
  assert.ok((await page.$eval('#legend', element => element.textContent)).includes('fusebox.cpu'));
  await press(page, '2');
  assert.ok(await page.$eval('#memory canvas', element => element.getBoundingClientRect().width) > 100);
  const box = await page.$eval('#memory canvas', element => { const {left, top, width, height} = element.getBoundingClientRect(); return [left + width / 2, top + height - 60]; });
  await page.mouse.move(...box);
  await press(page, '1');
  assert.ok(!await page.$eval('#graph', element => element.hidden));
}

// An import lists the nodes that a fused op replaced; a name that is HTML stays text.
async function listsReplacedNodes(page) {
  await page.evaluate(() => {
    functions[0].nodes[0].fused = {composite: 'lstm', rule: 'r', plugin: 'p', version: '1', replaces: [{op: 'WHILE', name: 'lstm/while'}, {op: 'MUL', name: '<img src=x>'}, {op: 'MUL', name: 'lstm/mul'}]};
    select(0, 0);
  });
  await settle(page);
  const details = await page.$eval('#details', element => element.textContent);
  for (const part of ['Instead of3 nodes', 'MUL2', 'lstm/while', '<img src=x>']) assert.ok(details.includes(part), `no ${part} in ${details}`);
  assert.equal(await page.$('#details img'), null, 'a name became an element');
  await press(page, 'Escape');
}

async function smallModel(browser) {
  const page = await open(browser, small);
  assert.equal(await page.$('img'), null, 'a name of the model became an element');
  await clicks(page);
  await opensAndCloses(page);
  await searches(page);
  await walks(page);
  await looks(page);
  await listsReplacedNodes(page);
}

async function largeModel(browser) {
  const page = await open(browser, large);
  assert.equal(await count(page), 0, 'a large model does not open closed');
  await press(page, 'e');
  assert.equal(await count(page), 2000);
  await page.keyboard.press('/');
  await page.keyboard.type('add_1234');
  await press(page, 'Enter');
  assert.equal(await heading(page), 'ADD');
  assert.ok((await page.$eval('#details', element => element.textContent)).includes('block_123/add_1234'));
}

async function comparedModel(browser) {
  const page = await open(browser, layers);
  assert.equal(await page.$eval('#color select', select => select.value), 'error');
  await page.mouse.click(...await place(page, '0.1'));
  await settle(page);
  assert.ok((await page.$eval('#details', element => element.textContent)).includes('differs'));
  await press(page, '3');
  assert.ok(await page.$$eval('#errors rect', all => all.length) >= 4);
  await page.click('#errors tr[data-go]');
  await settle(page);
  assert.ok(!await page.$eval('#graph', element => element.hidden));
}

async function main() {
  const browser = await puppeteer.launch({executablePath: browserPath, headless: true, args: ['--no-sandbox', '--disable-gpu']});
  try {
    await smallModel(browser);
    await largeModel(browser);
    await comparedModel(browser);
    assert.deepEqual(complaints, []);
  } finally {
    await browser.close();
  }
}

main().catch(error => {
  console.error(error.stack, complaints.join('\n'));
  process.exit(1);
});
