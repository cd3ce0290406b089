// SPDX-License-Identifier: Apache-2.0
// A file that can be read is opened and run, on small numbers.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <random>
#include <thread>

#include "host/graph/npy.h"
#include "host/model.h"
#include "host/session.h"
#include "host/tflite/tflite.h"
#include "tests/fuzz/targets.h"

namespace fusebox::fuzz {
namespace {

constexpr size_t kLargest = size_t{1}
                            << 20;  // bytes of one value: time goes by into many models, not into a large one

std::shared_ptr<Registry> RegistryWith(std::vector<std::string> plugins) {
  Config config;
  config.plugins = std::move(plugins);
  config.search_default_path = false;
  const auto registry = Registry::Create(config);
  FUSEBOX_CHECK(registry.has_value());
  return *registry;
}

// All that have kernels and no delegate.
std::vector<std::string> KernelPlugins() {
  std::vector<std::string> folders;
  for (const char* name : {"nn", "rnn", "signal", "text", "vision"})
    folders.push_back(std::string(FUSEBOX_PLUGINS) + "/fusebox." + name);
  return folders;
}

// Models with a value of more than kLargest bytes are left alone: they take time.
bool IsSmall(const Module& module) {
  for (const auto& function : module.functions) {
    for (ValueId id = 0; id < function->value_count(); ++id) {
      const auto bytes = ByteSize(function->value(id).type);
      if (bytes && *bytes > kLargest) return false;
    }
  }
  return true;
}

// Cancels a run that takes long: loops that do not end are no mistake of the reader. One at a time.
class Watchdog {
 public:
  // Watches a session while it lives.
  class Watch {
   public:
    explicit Watch(Session& session) { Set(&session); }
    ~Watch() { Set(nullptr); }
    Watch(const Watch&) = delete;

   private:
    static void Set(Session* session) {
      Watchdog& dog = Get();
      const std::lock_guard lock(dog.mutex_);
      dog.session_ = session;
      dog.seen_ = false;
    }
  };

 private:
  static Watchdog& Get() {
    static Watchdog dog;
    return dog;
  }
  void Run(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
      if (session_ != nullptr && seen_) session_->Cancel();
      seen_ = true;
      wake_.wait_for(lock, stop, std::chrono::milliseconds(50), [] { return false; });
    }
  }

  std::mutex mutex_;
  std::condition_variable_any wake_;
  Session* session_ = nullptr;
  bool seen_ = false;  // in an earlier turn
  std::jthread thread_{[this](const std::stop_token& stop) { Run(stop); }};
};

Buffer Words(int64_t count, std::mt19937& random) {
  std::vector<std::string> words;
  for (int64_t i = 0; i < count && i < int64_t{kLargest}; ++i)
    words.emplace_back(random() % 4, static_cast<char>('a' + random() % 3));
  return PackStrings(words);
}

Tensor Numbers(const Type& declared, std::mt19937& random) {
  Type type = declared;
  if (!type.shape.ranked()) type.shape = Shape({2});
  for (int64_t& dim : type.shape.dims()) dim = dim < 0 ? 2 : dim;
  if (ByteSize(type).value_or(0) > kLargest) return {type, {}};
  if (type.dtype == DType::kString) return {type, Words(type.shape.element_count().value_or(0), random)};
  const size_t size = ByteSize(type).value_or(0);
  return {type, Buffer::Make(size, [&](std::span<std::byte> bytes) {
            for (size_t i = 0; i < bytes.size(); ++i) {
              // Floats from 2 to 4 and below 0, whole numbers from -3 to 3.
              const bool float_top = type.dtype == DType::kF32 && i % 4 == 3;
              const bool other = BitsOf(type.dtype) > 8 && i % (BitsOf(type.dtype) / 8) != 0;
              bytes[i] = float_top ? std::byte(random() % 2 == 0 ? 0x40 : 0xBF)
                         : other   ? std::byte(0)
                                   : std::byte(random() % (type.dtype == DType::kBool ? 2 : 4));
            }
          })};
}

// Every byte is read, where a sanitizer can see it.
void ReadOutputs(const Session& session) {
  for (size_t i = 0; i < session.outputs().size(); ++i) {
    const auto value = session.output(static_cast<int>(i));
    if (!value) continue;
    volatile std::byte sum{};
    for (const std::byte byte : value->data.bytes()) sum = sum ^ byte;
  }
}

Status RunOnce(Session& session, std::mt19937& random) {
  int input = 0;
  for (const Session::Slot& slot : session.inputs()) {
    const Tensor value = Numbers(slot.type, random);
    if (value.data) FUSEBOX_TRY(session.SetInput(input, value));
    ++input;
  }
  FUSEBOX_TRY(session.Run());
  ReadOutputs(session);
  return {};
}

// Another size for one dim of one input; false: there is none.
bool Resize(Session& session, std::mt19937& random) {
  constexpr int64_t kSizes[] = {1, 2, 3, 5, 0, 9, 33};
  if (session.inputs().empty()) return false;
  const size_t input = random() % session.inputs().size();
  Shape shape = session.inputs()[input].type.shape;
  if (shape.rank() < 1) return false;
  for (int64_t& dim : shape.dims()) dim = dim < 0 ? 2 : dim;
  shape.dims()[random() % shape.dims().size()] = kSizes[random() % std::size(kSizes)];
  return session.Resize(static_cast<int>(input), shape).has_value();
}

Status IfInternal(Status status) {
  return !status && status.error().code == Code::kInternal ? std::move(status) : Status();
}

// Opens a file and runs it, on other shapes too, and after a reset. Errors after the first run count only if
// they are internal.
Status RunFile(std::span<const std::byte> bytes, const std::shared_ptr<Registry>& registry,
               std::vector<Config::Delegate> delegates) {
  FUSEBOX_ASSIGN(auto module, tflite::Read(Buffer::Copy(bytes), "fuzz.tflite"));
  if (!IsSmall(*module)) return {};
  FUSEBOX_ASSIGN(const auto model, Model::FromModule(std::move(module), {.registry = registry,
                                                                         .delegates = std::move(delegates)}));
  FUSEBOX_ASSIGN(const auto session, Session::Create(model, {.memory_limit = 64 * kLargest}));
  const Watchdog::Watch watch(*session);
  std::mt19937 random(static_cast<uint32_t>(bytes.size()));
  FUSEBOX_TRY(RunOnce(*session, random));
  FUSEBOX_TRY(IfInternal(RunOnce(*session, random)));
  for (int i = 0; i < 2; ++i)
    if (Resize(*session, random)) FUSEBOX_TRY(IfInternal(RunOnce(*session, random)));
  session->ResetState();
  return IfInternal(RunOnce(*session, random));
}

}  // namespace

Status RunModel(std::span<const std::byte> bytes) {
  static const auto registry = RegistryWith(KernelPlugins());
  return RunFile(bytes, registry, {});
}

#ifdef FUSEBOX_XNNPACK
Status RunDelegated(std::span<const std::byte> bytes) {
  static const auto registry = RegistryWith({FUSEBOX_XNNPACK});
  Config::Delegate delegate{"xnnpack"};
  delegate.options.Set("placement", "all");
  return RunFile(bytes, registry, {delegate});
}
#endif

}  // namespace fusebox::fuzz
