// SPDX-License-Identifier: Apache-2.0
// Error texts for layers without a table row: the origin of the class and what to do.
#include <algorithm>
#include <array>

#include "converter/import/keras/custom.h"
#include "converter/import/keras/layer_call.h"

namespace fusebox::keras {
namespace {

constexpr std::array kOfKeras = {"AugMix",
                                 "AutoContrast",
                                 "ConvLSTM2DCell",
                                 "CutMix",
                                 "Deconvolution2D",
                                 "Deconvolution3D",
                                 "DenseFeatures",
                                 "Equalization",
                                 "GroupQueryAttention",
                                 "HashedCrossing",
                                 "Highway",
                                 "LocallyConnected1D",
                                 "LocallyConnected2D",
                                 "MaxNumBoundingBoxes",
                                 "MaxoutDense",
                                 "MelSpectrogram",
                                 "ParametricSoftplus",
                                 "RNN",
                                 "RandAugment",
                                 "RandomCrop",
                                 "ReversibleEmbedding",
                                 "SReLU",
                                 "STFTSpectrogram",
                                 "Solarization",
                                 "SpectralNormalization",
                                 "StackedRNNCells"};

// Layers that call code of another framework or file.
constexpr std::array kForeign = {"FlaxLayer", "JaxLayer", "KerasLayer", "TFSMLayer", "TorchModuleWrapper"};

}  // namespace

std::string WhyUnknown(const std::string& class_name) {
  const std::string instead =
      "save the model as a SavedModel (model.export, tf.saved_model.save), which stores it as TensorFlow ops";
  if (class_name == "Lambda") return "a Python function, whose code is not in the file; " + instead;
  if (std::ranges::find(kForeign, class_name) != kForeign.end())
    return "it calls code that is not in the file;  " + instead;
  if (std::ranges::find(kOfKeras, class_name) != kOfKeras.end()) return "unsupported Keras layer; " + instead;
  return "unsupported class; the code of custom classes is not in the file; " + ImporterAdvice(class_name) +
         ", or " + instead;
}

}  // namespace fusebox::keras
