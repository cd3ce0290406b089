// SPDX-License-Identifier: Apache-2.0
// Sizes and offsets as rows.
#pragma once

#include <cstddef>

#define FUSEBOX_SIZE(type, bytes) static_assert(sizeof(type) == (bytes))
#define FUSEBOX_MEMBER(type, member, offset) static_assert(offsetof(type, member) == (offset))
