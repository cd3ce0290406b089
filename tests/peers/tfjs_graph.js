// SPDX-License-Identifier: Apache-2.0
// Run by tests/peers/tfjs_graph.cc: JOB OUT. A flat GraphDef with its weights, and what TensorFlow.js makes of the inputs.
const fs = require('fs');
const job = JSON.parse(fs.readFileSync(process.argv[2]));
const tf = require(job.package);
const bytes = fs.readFileSync(job.data);
const part = (begin, end) => bytes.buffer.slice(bytes.byteOffset + begin, bytes.byteOffset + end);

// Files leave out what is the default of TensorFlow's op, and TensorFlow.js does not know it.
const ones = {list: {i: [1, 1, 1, 1]}};
const complete = node => {
  if (/Conv2D|DepthwiseConv2d/.test(node.op) && !node.attr.dilations) node.attr.dilations = ones;
};
job.graph.node.forEach(complete);
job.graph.library.function.forEach(f => f.nodeDef.forEach(complete));

const run = async () => {
  const model = await tf.loadGraphModel(tf.io.fromMemory(
      {modelTopology: job.graph, weightSpecs: job.weights, weightData: part(0, job.weights_size)}));
  const inputs = tf.io.decodeWeights(part(job.weights_size, bytes.length), job.inputs);
  const results = await model.executeAsync(inputs, job.outputs);
  return (Array.isArray(results) ? results : [results]).map(r => ({shape: r.shape, values: Array.from(r.dataSync(), Number)}));
};

run().catch(error => ({error: error.message})).then(out => fs.writeFileSync(process.argv[3], JSON.stringify(out)));
