# SPDX-License-Identifier: Apache-2.0
"""A SavedModel whose function implements a custom op by name. `tf` and `make_saved_model` are given."""
saved_model_dir = make_saved_model()  # noqa: F821
converter = tf.lite.TFLiteConverter.from_saved_model(saved_model_dir)  # noqa: F821
converter.allow_custom_ops = True
tflite_model = converter.convert()
with open(output_path, 'wb') as file:  # noqa: F821
    file.write(tflite_model)
