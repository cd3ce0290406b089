# SPDX-License-Identifier: Apache-2.0
"""Functions of TensorFlow that plugins fuse. `tf` is TensorFlow itself, `folder` an empty folder."""
import os

IMPLEMENTS = ('name: "my_custom_fused_op" attr { key: "tfl_fusable_op" value { b: true } } '
              'attr { key: "example_option" value { i: 10 } }')


@tf.function(experimental_implements=IMPLEMENTS)  # noqa: F821
def my_custom_fused_op(a, b):
    return tf.constant(0.0, shape=[1, 2]), tf.constant(1.0, shape=[1, 2])  # noqa: F821


class Fused(tf.Module):  # noqa: F821
    @tf.function(input_signature=[tf.TensorSpec([1, 2]), tf.TensorSpec([1, 2])])  # noqa: F821
    def serve(self, a, b):
        return my_custom_fused_op(a, b)


saved_model_dir = os.path.join(folder, 'fused')  # noqa: F821
tf.saved_model.save(Fused(), saved_model_dir)  # noqa: F821
