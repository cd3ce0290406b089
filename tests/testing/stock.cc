// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/stock.h"

#include <dlfcn.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <map>

#include "tests/testing/peer.h"

namespace fusebox::testing {
namespace {

// TfLiteRegistration of TFLite 2.9, and room for what a later one may append.
struct Registration {
  void* (*init)(void* context, const char* options, size_t size);
  void (*free)(void* context, void* data);
  int (*prepare)(void* context, void* node);
  int (*invoke)(void* context, void* node);
  const char* (*profile)(const void* context, const void* node);
  int32_t builtin_code;
  const char* name;
  int version;
  void* later[8];
};

// TfLiteXNNPackDelegateOptions of TFLite 2.9, and room for what a later one may append.
struct XnnpackOptions {
  int32_t threads;
  uint32_t flags;
  uint64_t later[8];
};
constexpr uint32_t kSigned8 = 1, kUnsigned8 = 2;

// A kernel's init has no argument of the caller's: what it saw goes to the interpreter that is being made.
thread_local std::vector<std::string>* stub_sees = nullptr;

void* StubInit(void*, const char* options, size_t size) {
  if (stub_sees) stub_sees->emplace_back(options, size);
  return nullptr;
}
int StubRuns(void*, void*) { return 0; }

constexpr DType kTypes[] = {
    DType::kNone,       DType::kF32, DType::kI32,       DType::kU8,      DType::kI64, DType::kString,
    DType::kBool,       DType::kI16, DType::kComplex64, DType::kI8,      DType::kF16, DType::kF64,
    DType::kComplex128, DType::kU64, DType::kResource,  DType::kVariant, DType::kU32, DType::kU16};

void Report(void* said, const char* format, va_list arguments) {
  char line[1024];
  std::vsnprintf(line, sizeof line, format, arguments);
  auto& text = *static_cast<std::string*>(said);
  text += (text.empty() ? "" : "; ") + std::string(line);
}

struct Api {
  void* (*model_create)(const char*);
  void (*model_delete)(void*);
  void* (*options_create)();
  void (*options_delete)(void*);
  void (*options_threads)(void*, int32_t);
  void (*options_reporter)(void*, void (*)(void*, const char*, va_list), void*);
  void (*options_custom)(void*, const char*, const Registration*, int32_t, int32_t);
  void (*options_delegate)(void*, void*);
  void* (*xnnpack_create)(const XnnpackOptions*);
  const XnnpackOptions* (*xnnpack_options)(void*);  // null: TFLite 2.9
  void (*xnnpack_delete)(void*);
  void* (*create)(void*, void*);
  void (*destroy)(void*);
  int32_t (*input_count)(void*);
  int32_t (*output_count)(void*);
  void* (*input)(void*, int32_t);
  void* (*output)(void*, int32_t);
  int (*resize)(void*, int32_t, const int*, int32_t);
  int (*allocate)(void*);
  int (*invoke)(void*);
  int (*reset)(void*);
  int (*type)(const void*);
  int32_t (*rank)(const void*);
  int32_t (*dim)(const void*, int32_t);
  size_t (*size)(const void*);
  void* (*data)(const void*);
};

// Later versions have other members between the threads and the flags, so that their defaults are kept.
void* CreateXnnpack(const Api& api, int threads) {
  XnnpackOptions options = {threads, kSigned8 | kUnsigned8, {}};
  if (api.xnnpack_options) {
    void* const standard = api.xnnpack_create(nullptr);
    std::memcpy(&options, api.xnnpack_options(standard), sizeof options);
    api.xnnpack_delete(standard);
    options.threads = threads;
  }
  return api.xnnpack_create(&options);
}

// `path`: empty: TFLite 2.9 of FUSEBOX_PEER_DIR.
Result<const Api*> Library(std::string path) {
  static std::map<std::string, Api> loaded;
  std::string why;
  if (path.empty()) path = PeerFile("libtensorflowlite_c.so", &why);
  if (path.empty()) return NotFound(why);
  if (const auto found = loaded.find(path); found != loaded.end()) return &found->second;
  Api api;
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return NotFound(dlerror());
  std::string missing;
  const auto find = [&](auto& function, const char* name) {
    void* const symbol = dlsym(library, (std::string("TfLite") + name).c_str());
    if (!symbol) missing = name;
    std::memcpy(&function, &symbol, sizeof symbol);
  };
  find(api.model_create, "ModelCreateFromFile");
  find(api.model_delete, "ModelDelete");
  find(api.options_create, "InterpreterOptionsCreate");
  find(api.options_delete, "InterpreterOptionsDelete");
  find(api.options_threads, "InterpreterOptionsSetNumThreads");
  find(api.options_reporter, "InterpreterOptionsSetErrorReporter");
  find(api.options_custom, "InterpreterOptionsAddCustomOp");
  find(api.options_delegate, "InterpreterOptionsAddDelegate");
  find(api.xnnpack_create, "XNNPackDelegateCreate");
  find(api.xnnpack_delete, "XNNPackDelegateDelete");
  find(api.create, "InterpreterCreate");
  find(api.destroy, "InterpreterDelete");
  find(api.input_count, "InterpreterGetInputTensorCount");
  find(api.output_count, "InterpreterGetOutputTensorCount");
  find(api.input, "InterpreterGetInputTensor");
  find(api.output, "InterpreterGetOutputTensor");
  find(api.resize, "InterpreterResizeInputTensor");
  find(api.allocate, "InterpreterAllocateTensors");
  find(api.invoke, "InterpreterInvoke");
  find(api.reset, "InterpreterResetVariableTensors");
  find(api.type, "TensorType");
  find(api.rank, "TensorNumDims");
  find(api.dim, "TensorDim");
  find(api.size, "TensorByteSize");
  find(api.data, "TensorData");
  if (!missing.empty()) return NotFound(path + ": no function TfLite" + missing);
  find(api.xnnpack_options, "XNNPackDelegateGetOptions");
  return &loaded.emplace(path, api).first->second;
}

}  // namespace

struct Stock::Impl {
  const Api* api = nullptr;
  void* model = nullptr;
  void* interpreter = nullptr;
  void* xnnpack = nullptr;
  bool allocated = false;
  std::string said;
  std::vector<std::string> custom_options;

  ~Impl() {
    if (interpreter) api->destroy(interpreter);
    if (xnnpack) api->xnnpack_delete(xnnpack);
    if (model) api->model_delete(model);
  }
  Type TypeOf(const void* tensor) const {
    std::vector<int64_t> dims;
    for (int d = 0; d < api->rank(tensor); ++d) dims.push_back(api->dim(tensor, d));
    const auto type = static_cast<size_t>(api->type(tensor));
    return {type < std::size(kTypes) ? kTypes[type] : DType::kNone, Shape(std::move(dims))};
  }
  Status Allocate() {
    if (allocated) return {};
    stub_sees = &custom_options;
    const int status = api->allocate(interpreter);
    stub_sees = nullptr;
    if (status != 0) return Unsupported("stock TFLite cannot allocate: " + said);
    allocated = true;
    return {};
  }
};

Stock::Stock() : impl_(std::make_unique<Impl>()) {}
Stock::~Stock() = default;

Result<std::unique_ptr<Stock>> Stock::Open(const std::string& path, const StockOptions& options) {
  return Make(path, options, nullptr);
}

Result<std::unique_ptr<Stock>> Stock::WithXnnpack(const std::string& path, int threads) {
  return Open(path, {.threads = threads, .xnnpack = true});
}

Result<std::unique_ptr<Stock>> Stock::WithDelegate(const std::string& path, void* delegate) {
  return Make(path, {}, delegate);
}

Result<std::unique_ptr<Stock>> Stock::Make(const std::string& path, const StockOptions& wanted,
                                           void* delegate) {
  std::unique_ptr<Stock> stock(new Stock());
  Impl& impl = *stock->impl_;
  FUSEBOX_ASSIGN(impl.api, Library(wanted.library));
  impl.model = impl.api->model_create(path.c_str());
  if (!impl.model) return Invalid("stock TFLite cannot load " + path);
  void* const options = impl.api->options_create();
  impl.api->options_threads(options, wanted.threads);
  impl.api->options_reporter(options, Report, &impl.said);
  Registration stub = {StubInit, nullptr, StubRuns, StubRuns, nullptr, 32, wanted.custom.c_str(), 1, {}};
  if (!wanted.custom.empty()) impl.api->options_custom(options, wanted.custom.c_str(), &stub, 1, 1);
  if (wanted.xnnpack) {
    impl.xnnpack = CreateXnnpack(*impl.api, wanted.threads);
    impl.api->options_delegate(options, impl.xnnpack);
  }
  if (delegate != nullptr) impl.api->options_delegate(options, delegate);
  stub_sees = &impl.custom_options;
  impl.interpreter = impl.api->create(impl.model, options);
  stub_sees = nullptr;
  impl.api->options_delete(options);
  if (!impl.interpreter) return Unsupported("stock TFLite makes no interpreter: " + impl.said);
  return stock;
}

int Stock::input_count() const { return impl_->api->input_count(impl_->interpreter); }
int Stock::output_count() const { return impl_->api->output_count(impl_->interpreter); }

Result<Type> Stock::input_type(int index) const {
  if (index < 0 || index >= input_count())
    return Invalid("stock TFLite has no input " + std::to_string(index));
  return impl_->TypeOf(impl_->api->input(impl_->interpreter, index));
}

Status Stock::Resize(int index, const Shape& shape) {
  FUSEBOX_ASSIGN(const Type now, input_type(index));
  if (now.shape == shape) return {};
  const std::vector<int> dims(shape.dims().begin(), shape.dims().end());
  if (impl_->api->resize(impl_->interpreter, index, dims.data(), shape.rank()) != 0)
    return Invalid("stock TFLite cannot resize input " + std::to_string(index) + ": " + impl_->said);
  impl_->allocated = false;
  return {};
}

Status Stock::SetInput(int index, const Tensor& value) {
  FUSEBOX_TRY(impl_->Allocate());
  FUSEBOX_ASSIGN(const Type type, input_type(index));
  void* const tensor = impl_->api->input(impl_->interpreter, index);
  if (type != value.type || impl_->api->size(tensor) != value.data.size())
    return Invalid("input " + std::to_string(index) + " of stock TFLite is " + ToString(type) + ", not " +
                   ToString(value.type));
  if (value.data.size() > 0) std::memcpy(impl_->api->data(tensor), value.data.data(), value.data.size());
  return {};
}

Status Stock::Run() {
  FUSEBOX_TRY(impl_->Allocate());
  if (impl_->api->invoke(impl_->interpreter) != 0)
    return Unsupported("stock TFLite cannot invoke: " + impl_->said);
  return {};
}

Result<Tensor> Stock::output(int index) const {
  if (index < 0 || index >= output_count())
    return Invalid("stock TFLite has no output " + std::to_string(index));
  const void* const tensor = impl_->api->output(impl_->interpreter, index);
  const auto* const data = static_cast<const std::byte*>(impl_->api->data(tensor));
  return Tensor{impl_->TypeOf(tensor), Buffer::Copy({data, data ? impl_->api->size(tensor) : 0})};
}

Result<std::vector<Tensor>> Stock::Invoke(const std::vector<Tensor>& inputs) {
  const int count = static_cast<int>(inputs.size());
  for (int i = 0; i < count; ++i) FUSEBOX_TRY(Resize(i, inputs[static_cast<size_t>(i)].type.shape));
  for (int i = 0; i < count; ++i) FUSEBOX_TRY(SetInput(i, inputs[static_cast<size_t>(i)]));
  FUSEBOX_TRY(Run());
  std::vector<Tensor> outputs;
  for (int i = 0; i < output_count(); ++i) {
    FUSEBOX_ASSIGN(Tensor value, output(i));
    outputs.push_back(std::move(value));
  }
  return outputs;
}

Status Stock::ResetVariables() {
  if (impl_->api->reset(impl_->interpreter) != 0) return Internal("stock TFLite cannot reset its variables");
  return {};
}

const std::vector<std::string>& Stock::custom_options() const { return impl_->custom_options; }

}  // namespace fusebox::testing
