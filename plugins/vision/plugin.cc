// SPDX-License-Identifier: Apache-2.0
#include <fusebox/plugin.hpp>

#include "plugins/vision/detection.h"

FUSEBOX_PLUGIN("fusebox.vision", "1.0.0", fusebox::vision::DetectionPostProcess)
