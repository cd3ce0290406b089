// SPDX-License-Identifier: Apache-2.0
#include "plugins/xnnpack/packing/kept_weights.h"

#include <fusebox/abi/ext/caller.h>
#include <fusebox/delegate.hpp>

#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "plugins/xnnpack/cache/writer.h"
#include "plugins/xnnpack/packing/build.h"
#include "plugins/xnnpack/packing/graph_key.h"
#include "plugins/xnnpack/packing/model_weights.h"
#include "plugins/xnnpack/packing/settings.h"
#include "plugins/xnnpack/profile.h"

namespace fusebox::xnnpack {

using namespace sdk;

namespace {

// In addition to Family, for listings.
constexpr uint16_t kForeign = 0x100;

std::string_view Text(fbx_str text) {
  return text.ptr == nullptr ? std::string_view() : to_string_view(text);
}

// Weights that are packed in one phase. Any thread.
class Batch {
 public:
  explicit Batch(const Settings& settings)
      : weights_(OpenStore(settings.cache_path)), writer_(weights_.store().NewWriter(settings.share)) {}

  ModelWeights& weights() { return weights_; }
  cache::Writer& writer() { return *writer_; }
  uint64_t FingerprintOf(const fbx_plugin* plugin) {
    const std::lock_guard lock(mutex_);
    if (plugin == plugin_) return fingerprint_;
    const std::string text = std::string(to_string_view(plugin->version)) + ' ' + BuildAt(plugin);
    plugin_ = plugin;
    return fingerprint_ = cache::Hash(std::as_bytes(std::span(text))).low;
  }
  // A miss is open until its bytes are committed or given up. Publishing waits for open ones: what is packed
  // into them would otherwise not be in the segment.
  void Open() {
    const std::lock_guard lock(mutex_);
    ++open_;
  }
  void Close() noexcept {
    const std::lock_guard lock(mutex_);
    if (--open_ == 0 && ended_) Publish();
  }
  void End() noexcept {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    if (open_ == 0) Publish();
  }

 private:
  void Publish() noexcept {
    try {
      writer_->Publish();
      weights_.Save();
    } catch (const std::bad_alloc&) {
      return;  // the next start packs again
    }
  }

  ModelWeights weights_;
  const std::unique_ptr<cache::Writer> writer_;
  std::mutex mutex_;                    // of the rest
  const fbx_plugin* plugin_ = nullptr;  // the last one, and its fingerprint
  uint64_t fingerprint_ = 0;
  int open_ = 0;
  bool ended_ = false;
};

// A handle's weights. The batch holds the store, so that the last handle waits for what is being published;
// opening a model does not wait.
struct Held {
  std::shared_ptr<Batch> batch;
  cache::Key key;
  size_t size = 0;  // 0: found, or not known yet
  std::optional<cache::Blob> blob;
  std::byte* reserved = nullptr;
  std::string description;
  bool open = false;

  void Open() {
    batch->Open();
    open = true;
  }
  void Close() noexcept {
    if (std::exchange(open, false)) batch->Close();
  }
  const std::byte* Commit(size_t bytes) {
    const cache::About about{.seed = 0, .family = kForeign, .recipe = description};
    blob = batch->writer().Commit(key, std::exchange(reserved, nullptr), bytes, about);
    return blob->bytes.data();
  }
  ~Held() {
    if (reserved != nullptr) batch->writer().Discard(reserved);
    Close();
  }
};

// Returns the batch of the caller's phase, or null if nothing is stored for this model; the model keeps
// either.
std::shared_ptr<Batch> BatchOf(const fbx_host* host, const fbx_caller& caller) {
  static const char key = 0;
  static std::mutex mutex;  // one batch per phase, though several threads may need it first
  const std::lock_guard lock(mutex);
  if (void* const kept = caller.find(host, &key)) return *static_cast<std::shared_ptr<Batch>*>(kept);
  const std::optional<Settings> settings = Settings::Of(host, caller);
  const bool stored = settings && !settings->cache_path.empty();
  auto made = std::make_unique<std::shared_ptr<Batch>>(stored ? std::make_shared<Batch>(*settings) : nullptr);
  const auto done = [](void*, void* object) noexcept {
    const std::unique_ptr<std::shared_ptr<Batch>> batch(static_cast<std::shared_ptr<Batch>*>(object));
    if (*batch != nullptr) (*batch)->End();
  };
  if (caller.keep(host, &key, made.get(), done, nullptr) != FBX_OK) return nullptr;
  return *made.release();
}

cache::Key KeyOf(const fbx_host* host, Batch& batch, const fbx_plugin* plugin,
                 const fbx_weights_recipe* recipe) {
  cache::KeyBuilder builder("kernel");
  builder.Text(to_string_view(plugin->id))
      .Text(Text(recipe->what))
      .Text(Text(recipe->layout))
      .Number(recipe->size);
  builder.Number(recipe->number_count).Number(recipe->source_count);
  for (uint32_t i = 0; i < recipe->number_count; ++i)
    builder.Number(static_cast<uint64_t>(recipe->numbers[i]));
  for (uint32_t i = 0; i < recipe->source_count; ++i)
    AddSource(builder, *recipe->sources[i], batch.weights());
  if (FBX_HAS(recipe, graph)) AddGraph(builder, Graph(host, recipe->graph), batch.weights());
  return builder.Build(batch.FingerprintOf(plugin));
}

std::string Describe(const fbx_plugin* plugin, const fbx_weights_recipe& recipe) {
  std::string text = std::string(to_string_view(plugin->id)) + ": " + std::string(Text(recipe.what));
  if (recipe.layout.len > 0) text += ", " + std::string(Text(recipe.layout));
  for (uint32_t i = 0; i < recipe.number_count; ++i)
    text += (i == 0 ? ", " : " ") + std::to_string(recipe.numbers[i]);
  return text;
}

// A newer member of the caller's struct.
void SetSize(fbx_packed& packed, size_t size) {
  if (packed.head.size >= offsetof(fbx_packed, size) + sizeof(packed.size)) packed.size = size;
}

void Show(Held& held, fbx_packed& packed) {
  packed.data = held.blob ? held.blob->bytes.data() : nullptr;
  packed.memory = held.reserved;
  SetSize(packed, held.blob ? held.blob->bytes.size() : 0);
}

// Null outside of the phases of a store.
const fbx_caller* CallerOf(const fbx_host* host) {
  const auto* caller = static_cast<const fbx_caller*>(host->get_extension(host, to_fbx_str(FBX_EXT_CALLER)));
  return FBX_HAS(caller, keep) ? caller : nullptr;
}

int Keeps(const fbx_host* host) noexcept {
  const fbx_caller* const caller = CallerOf(host);
  try {
    return caller != nullptr && BatchOf(host, *caller) != nullptr ? 1 : 0;
  } catch (const Error&) {
    return 0;
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

fbx_status Acquire(const fbx_host* host, const fbx_weights_recipe* recipe, fbx_packed* packed) noexcept {
  const fbx_caller* const caller = CallerOf(host);
  if (caller == nullptr) return FBX_NOT_APPLICABLE;
  try {
    const std::shared_ptr<Batch> batch = BatchOf(host, *caller);
    if (batch == nullptr) return FBX_NOT_APPLICABLE;
    const fbx_plugin* const plugin = caller->plugin(host);
    auto held = std::make_unique<Held>(Held{.batch = batch, .size = recipe->size});
    LookUpSpan span(host);
    held->key = KeyOf(host, *batch, plugin, recipe);
    held->blob = batch->writer().Find(held->key);
    span.End(held->blob.has_value(), held->blob ? held->blob->bytes.size() : recipe->size);
    if (held->blob && recipe->size > 0 && held->blob->bytes.size() != recipe->size) {
      batch->weights().store().Distrust(held->key);
      return FBX_NOT_APPLICABLE;
    }
    if (!held->blob) {
      held->description = Describe(plugin, *recipe);
      held->Open();
      if (recipe->size > 0) held->reserved = batch->writer().Reserve(recipe->size);
      if (recipe->size > 0 && held->reserved == nullptr) return FBX_OUT_OF_MEMORY;
    }
    Show(*held, *packed);
    packed->handle = held.release();
    return FBX_OK;
  } catch (const Error& error) {
    return error.status;
  } catch (const std::bad_alloc&) {
    return FBX_OUT_OF_MEMORY;
  }
}

void Commit(fbx_packed* packed) noexcept {
  Held& held = *static_cast<Held*>(packed->handle);
  if (held.reserved == nullptr) return;
  packed->memory = nullptr;
  try {
    packed->data = held.Commit(held.size);
    SetSize(*packed, held.size);
  } catch (const std::bad_alloc&) {
    packed->data = nullptr;
  }
  held.Close();
}

fbx_status Put(fbx_packed* packed, const void* bytes, size_t size) noexcept {
  Held& held = *static_cast<Held*>(packed->handle);
  if (!held.open || held.reserved != nullptr || bytes == nullptr || size == 0) return FBX_INVALID;
  fbx_status status = FBX_OUT_OF_MEMORY;
  try {
    held.reserved = held.batch->writer().Reserve(size);
    if (held.reserved != nullptr) {
      std::memcpy(held.reserved, bytes, size);
      packed->data = held.Commit(size);
      SetSize(*packed, size);
      status = FBX_OK;
    }
  } catch (const std::bad_alloc&) {
    status = FBX_OUT_OF_MEMORY;
  }
  held.Close();
  return status;
}

void Release(void* handle) noexcept { delete static_cast<Held*>(handle); }

constexpr fbx_weights kWeights{.head = FBX_HEAD(fbx_weights),
                               .acquire = Acquire,
                               .commit = Commit,
                               .release = Release,
                               .put = Put,
                               .keeps = Keeps};

}  // namespace

const void* KeptWeights::table() noexcept { return &kWeights; }

}  // namespace fusebox::xnnpack
