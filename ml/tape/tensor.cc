#include "ml/tape/tensor.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "ml/tape/tensor_body.h"
#include "ml/tape/tensor_memory.h"

namespace parasol {
namespace {

// Threads take numbers in runs: a counter that all of them changed would be in
// no core's cache.
uint64_t NextId() {
  constexpr uint64_t kRun = 4096;
  static std::atomic<uint64_t> next_run = 1;
  thread_local uint64_t next = 0, end = 0;
  if (next == end) {
    next = next_run.fetch_add(kRun, std::memory_order_relaxed);
    end = next + kRun;
  }
  return next++;
}

size_t BytesOf(DType dtype) {
  return dtype == DType::kFloat32 ? sizeof(float) : sizeof(int64_t);
}

std::shared_ptr<TensorBody> NewBody() {
  return std::allocate_shared<TensorBody>(TensorAllocator<TensorBody>());
}

absl::Status CheckCount(size_t count, const TensorShape& shape) {
  RETURN_IF_ERROR(shape.Check());
  if (static_cast<int64_t>(count) == shape.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(count, " values for a tensor of shape ", shape.ToString(),
                   ", which has ", shape.size()));
}

template <typename T>
Tensor CopyOf(absl::Span<const T> values, const TensorShape& shape,
              DType dtype) {
  if (absl::Status checked = CheckCount(values.size(), shape); !checked.ok()) {
    return Tensor::Error(std::move(checked));
  }
  absl::StatusOr<NewTensor> copy = TensorAccess::New({dtype, shape});
  if (!copy.ok()) return Tensor::Error(copy.status());
  std::copy(values.begin(), values.end(), static_cast<T*>(copy->data));
  return std::move(copy->tensor);
}

const TensorBody& ZeroScalar() {
  static const TensorBody& zero = *[] {
    TensorBody& body = *new TensorBody;
    std::memset(body.few, 0, sizeof(body.few));
    body.data = body.few;
    return &body;
  }();
  return zero;
}

}  // namespace

absl::string_view NameOf(DType dtype) {
  return dtype == DType::kFloat32 ? "float32" : "int64";
}

TensorError::TensorError(absl::Status status)
    : std::runtime_error(std::string(status.message())),
      status_(std::move(status)) {}

TensorBody::TensorBody() : id(NextId()), elements_id(id) {}

Tensor::Tensor(float value) {
  const std::shared_ptr<TensorBody> body = NewBody();
  std::memcpy(body->few, &value, sizeof(value));
  body->data = body->few;
  body_ = body;
}

Tensor Tensor::Of(absl::Span<const float> values, const TensorShape& shape) {
  return CopyOf(values, shape, DType::kFloat32);
}

Tensor Tensor::Ints(absl::Span<const int64_t> values,
                    const TensorShape& shape) {
  return CopyOf(values, shape, DType::kInt64);
}

namespace {

absl::StatusOr<std::shared_ptr<TensorBody>> AliasBody(
    std::shared_ptr<const void> values, const TensorShape& shape, DType dtype) {
  RETURN_IF_ERROR(shape.Check());
  if (values == nullptr && shape.size() > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("no memory for a tensor of shape ", shape.ToString()));
  }
  std::shared_ptr<TensorBody> body = NewBody();
  body->dtype = dtype;
  body->shape = shape;
  body->data = values.get();
  body->owner = std::move(values);
  return body;
}

}  // namespace

Tensor Tensor::Alias(std::shared_ptr<const float> values,
                     const TensorShape& shape) {
  auto body = AliasBody(std::move(values), shape, DType::kFloat32);
  return body.ok() ? Tensor(*std::move(body)) : Error(body.status());
}

Tensor Tensor::Alias(std::shared_ptr<const int64_t> values,
                     const TensorShape& shape) {
  auto body = AliasBody(std::move(values), shape, DType::kInt64);
  return body.ok() ? Tensor(*std::move(body)) : Error(body.status());
}

Tensor Tensor::Error(absl::Status status) {
  CHECK(!status.ok()) << "Tensor::Error() of no error";
  std::shared_ptr<TensorBody> body = NewBody();
  body->status = std::move(status);
  return Tensor(std::move(body));
}

const TensorBody& Tensor::body() const {
  return body_ == nullptr ? ZeroScalar() : *body_;
}

const absl::Status& Tensor::status() const { return body().status; }
bool Tensor::connected() const { return body().connected; }
const TensorShape& Tensor::shape() const { return body().shape; }
DType Tensor::dtype() const { return body().dtype; }

int64_t Tensor::size() const {
  return body().status.ok() ? body().shape.size() : 0;
}

namespace {

void CheckReadable(const TensorBody& body, DType dtype) {
  if (!body.status.ok()) throw TensorError(body.status);
  if (body.dtype == dtype) return;
  throw TensorError(absl::InvalidArgumentError(absl::StrCat(
      "a tensor of shape ", body.shape.ToString(), " is ", NameOf(body.dtype),
      ", not ", NameOf(dtype), "; read it by ",
      body.dtype == DType::kFloat32 ? "values()" : "ints()", " or Cast() it")));
}

}  // namespace

absl::Span<const float> Tensor::values() const {
  CheckReadable(body(), DType::kFloat32);
  return absl::MakeConstSpan(TensorAccess::Floats(*this), size());
}

absl::Span<const int64_t> Tensor::ints() const {
  CheckReadable(body(), DType::kInt64);
  return absl::MakeConstSpan(TensorAccess::Ints(*this), size());
}

float Tensor::scalar() const {
  if (!status().ok()) throw TensorError(status());
  if (size() != 1) {
    throw TensorError(absl::InvalidArgumentError(absl::StrCat(
        "a tensor of shape ", shape().ToString(), " is no scalar")));
  }
  return dtype() == DType::kFloat32
             ? TensorAccess::Floats(*this)[0]
             : static_cast<float>(TensorAccess::Ints(*this)[0]);
}

absl::StatusOr<NewTensor> TensorAccess::New(const TensorType& type) {
  RETURN_IF_ERROR(type.shape.Check());
  const std::shared_ptr<TensorBody> body = NewBody();
  body->dtype = type.dtype;
  body->shape = type.shape;
  const size_t bytes = type.shape.size() * BytesOf(type.dtype);
  if (bytes <= sizeof(body->few)) {
    body->data = body->few;
  } else {
    body->owner = NewTensorMemory(bytes);
    if (body->owner == nullptr) {
      return absl::ResourceExhaustedError(
          absl::StrCat("no memory for a tensor of shape ",
                       type.shape.ToString(), ", ", bytes, " bytes"));
    }
    body->data = body->owner.get();
  }
  void* const data = const_cast<void*>(body->data);
  return NewTensor{.tensor = Tensor(body), .data = data};
}

Tensor TensorAccess::View(const Tensor& tensor, const TensorShape& shape,
                          const void* leaf) {
  const TensorBody& from = tensor.body();
  const std::shared_ptr<TensorBody> body = NewBody();
  body->status = from.status;
  body->connected = from.connected;
  body->dtype = from.dtype;
  body->shape = shape;
  body->leaf = leaf;
  body->elements_id = from.elements_id;
  body->data = from.data;
  if (from.data == from.few) {
    std::memcpy(body->few, from.few, sizeof(from.few));
    body->data = body->few;
  } else {
    body->owner = from.owner;
  }
  return Tensor(body);
}

Tensor TensorAccess::WithoutElements(const Tensor& tensor) {
  const TensorBody& from = tensor.body();
  if (from.owner == nullptr) return tensor;
  const std::shared_ptr<TensorBody> body = NewBody();
  body->dtype = from.dtype;
  body->shape = from.shape;
  body->id = from.id;
  body->leaf = from.leaf;
  return Tensor(body);
}

Tensor TensorAccess::Unconnected(int64_t source) {
  const std::shared_ptr<TensorBody> body = NewBody();
  body->status = absl::NotFoundError(
      absl::StrCat("there is no gradient by source ", source,
                   ": no target depends on it, or the tape did not watch it"));
  body->connected = false;
  return Tensor(body);
}

Tensor Filled(const TensorShape& shape, float value) {
  absl::StatusOr<NewTensor> filled =
      TensorAccess::New({DType::kFloat32, shape});
  if (!filled.ok()) return Tensor::Error(filled.status());
  const absl::Span<float> floats = filled->floats();
  std::fill(floats.begin(), floats.end(), value);
  return std::move(filled->tensor);
}

}  // namespace parasol
