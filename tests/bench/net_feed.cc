// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/bench/net_bench.h"

namespace fusebox::bench {

Status Feed(testing::Stock& stock, Session& session) {
  for (int i = 0; i < static_cast<int>(session.inputs().size()); ++i) {
    FUSEBOX_ASSIGN(const auto bytes, session.InputData(i));
    FUSEBOX_ASSIGN(Type type, stock.input_type(i));
    for (int64_t& d : type.shape.dims()) d = std::max<int64_t>(d, 1);
    FUSEBOX_TRY(stock.Resize(i, type.shape));
    FUSEBOX_TRY(stock.SetInput(i, {type, Buffer::Copy(bytes)}));
  }
  return {};
}

}  // namespace fusebox::bench
