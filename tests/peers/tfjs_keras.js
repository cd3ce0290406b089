// SPDX-License-Identifier: Apache-2.0
// Run by tests/peers/tfjs.cc: JOB OUT. Keras models by their configuration and their weights layer by layer, and what
// TensorFlow.js makes of their inputs. See tfjs.h.
const fs = require('fs');
const job = JSON.parse(fs.readFileSync(process.argv[2]));
const tf = require(job.package);
const bytes = fs.readFileSync(job.data);

const tensor = t => {
  const size = t.shape.reduce((a, b) => a * b, 1);
  const raw = bytes.buffer.slice(bytes.byteOffset + t.offset, bytes.byteOffset + t.offset + 4 * size);
  return tf.tensor(t.dtype === 'int32' ? new Int32Array(raw) : new Float32Array(raw), t.shape, t.dtype);
};

// What only training needs: some of it TensorFlow.js does not know, and weights are set anyway.
const strip = node => {
  if (node === null || typeof node !== 'object') return;
  for (const key of Object.keys(node)) {
    if (/_(regularizer|constraint)$/.test(key)) node[key] = null;
    else if (/_initializer$/.test(key)) node[key] = {class_name: 'Zeros', config: {}};
    else strip(node[key]);
  }
};
const run = async ({config, layers, inputs}) => {
  strip(config);
  const model = await tf.loadLayersModel(tf.io.fromMemory({modelTopology: {model_config: config}}));
  for (const {name, weights} of layers) {
    const layer = model.layers.find(l => l.name === name);
    if (layer) layer.setWeights(weights.map(tensor));
  }
  const given = inputs.map(tensor);
  const result = model.predict(given.length === 1 ? given[0] : given);
  return (Array.isArray(result) ? result : [result]).map(r => ({shape: r.shape, values: Array.from(r.dataSync())}));
};

(async () => {
  const outputs = [];
  for (const model of job.models) {
    tf.disposeVariables();
    outputs.push(await run(model).catch(error => ({error: error.message})));
  }
  fs.writeFileSync(process.argv[3], JSON.stringify(outputs));
})();
