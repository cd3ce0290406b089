# SPDX-License-Identifier: Apache-2.0
"""A Keras LSTM: converted from the object, run from bytes, compared with predict. `tf` and `make_model` are given."""
import numpy as np

model = make_model()  # noqa: F821
converter = tf.lite.TFLiteConverter.from_keras_model(model)  # noqa: F821
tflite_model = converter.convert()

interpreter = tf.lite.Interpreter(model_content=tflite_model)  # noqa: F821
interpreter.allocate_tensors()
x = np.random.default_rng(7).standard_normal((1, 5, 4)).astype(np.float32)
expected = model.predict(x)
for _ in range(3):  # the layer keeps no state between calls
    interpreter.set_tensor(interpreter.get_input_details()[0]['index'], x)
    interpreter.invoke()
    result = interpreter.get_tensor(interpreter.get_output_details()[0]['index'])
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)
