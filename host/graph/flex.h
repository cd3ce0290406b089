// SPDX-License-Identifier: Apache-2.0
// FlexBuffer maps, the form of a custom op's options, as attributes.
//
// Bools, integers, reals, strings, maps, and lists of integers, of reals and of strings go both ways. What
// else a map may hold (blobs, nulls, mixed lists) is read as an attribute without value. Of what attributes
// may hold beyond that, a dtype is written as its name, a shape as a list, a function as its name, and a
// tensor as a map {dtype, shape, data}.
#pragma once

#include <string>
#include <string_view>

#include "host/graph/types.h"

namespace fusebox {

// An error where the bytes are no FlexBuffer, or its root is no map. Never trusts the bytes.
Result<Attrs> ReadFlexMap(std::string_view bytes);
// Typed vectors for numbers, an untyped one for strings. Keys are sorted.
std::string WriteFlexMap(const Attrs&);
// True when readers of the map that WriteFlexMap(attrs) makes see what readers of these bytes see.
bool FlexMapEquals(std::string_view bytes, const Attrs& attrs);

}  // namespace fusebox
