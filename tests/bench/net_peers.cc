// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/net_peers.h"

#include <cstdlib>

#include "tests/testing/stock.h"

namespace fusebox::bench {
namespace {

class StockPeer : public Peer {
 public:
  explicit StockPeer(std::unique_ptr<testing::Stock> stock) : stock_(std::move(stock)) {}

  Status Feed(Session& session) override { return bench::Feed(*stock_, session); }
  Status Run() override { return stock_->Run(); }

 private:
  std::unique_ptr<testing::Stock> stock_;
};

Result<std::unique_ptr<Peer>> OpenStock(const std::string& path, const testing::StockOptions& options) {
  FUSEBOX_ASSIGN(auto stock, testing::Stock::Open(path, options));
  return std::make_unique<StockPeer>(std::move(stock));
}

}  // namespace

std::vector<PeerKind> PeersOf(const NetArguments& arguments) {
  if (arguments.kernels)
    return {{"TFLite", [](const std::string& path, int) { return OpenStock(path, {}); }}};
  std::vector<PeerKind> peers = {{"TFLite + XNNPACK", [](const std::string& path, int threads) {
                                    return OpenStock(path, {.threads = threads, .xnnpack = true});
                                  }}};
  if (const char* const litert = std::getenv("FUSEBOX_LITERT"); litert && *litert) {
    peers.push_back({"LiteRT", [library = std::string(litert)](const std::string& path, int threads) {
                       return OpenStock(path, {.threads = threads, .xnnpack = true, .library = library});
                     }});
  }
  peers.push_back(
      {"ONNX Runtime", [](const std::string& path, int threads) { return OpenOnnxPeer(path, threads); }});
  return peers;
}

}  // namespace fusebox::bench
