// SPDX-License-Identifier: Apache-2.0
#include "host/graph/flex.h"

#include "host/tflite/tflite.h"

namespace fusebox::tflite {

Result<Attrs> ReadFlexMap(std::string_view bytes) { return fusebox::ReadFlexMap(bytes); }
std::string WriteFlexMap(const Attrs& attrs) { return fusebox::WriteFlexMap(attrs); }

}  // namespace fusebox::tflite
