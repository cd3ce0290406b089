// SPDX-License-Identifier: Apache-2.0
// tflite_node_specs.js SPECS.js: runs the specs of tfjs-tflite-node, which are written for jasmine, in the working
// directory. The package lacks its test data: other models stand in for it (tflite_node.sh), so specs that name the
// contents of the originals are skipped.
'use strict';
const assert = require('assert');
const Module = require('module');

const kSkipped = {
  'gets input tensor name': 'the name is the original model\'s',
  'gets output tensor name': 'the name is the original model\'s',
  'gets input tensor id': 'the number is the original model\'s',
  'runs a model': 'its picture and its labels are not in the package',
  'runs a model with float32 input': 'the class is the original model\'s',
  'loads a model from the web': 'it needs the network',
};

// A decoder of pictures that only skipped specs use.
const load = Module._load;
Module._load = (name, ...rest) => name === 'jpeg-js' ? {} : load(name, ...rest);

const specs = [];
const suites = [];
global.describe = (name, body) => {
  suites.push({name, before: []});
  body();
  suites.pop();
};
global.beforeEach = (body) => suites[suites.length - 1].before.push(body);
global.it = (name, body) =>
    specs.push({name, suite: suites.map((suite) => suite.name).join(' '),
                before: suites.flatMap((suite) => suite.before), body});
global.expect = (value) => ({
  toEqual: (other) => assert.deepStrictEqual(value, other),
  toBeDefined: () => assert.notStrictEqual(value, undefined),
  toBeTruthy: () => assert.ok(value),
});
require(require('path').resolve(process.argv[2]));

(async () => {
  const counts = {passed: 0, skipped: 0, failed: 0};
  for (const spec of specs) {
    let outcome = 'passed';
    let why = kSkipped[spec.name];
    if (why !== undefined) {
      outcome = 'skipped';
    } else {
      try {
        for (const before of spec.before) await before();
        await spec.body();
      } catch (error) {
        outcome = 'failed';
        why = error.message;
      }
    }
    counts[outcome] += 1;
    console.log(`${outcome}: ${spec.suite}: ${spec.name}${why === undefined ? '' : ': ' + why}`);
  }
  console.log(`${counts.passed} passed, ${counts.skipped} skipped, ${counts.failed} failed`);
  process.exitCode = counts.failed > 0 || counts.passed === 0 ? 1 : 0;
})();
