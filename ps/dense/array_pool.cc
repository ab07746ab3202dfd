#include "ps/dense/array_pool.h"

#include <cstdlib>

#include "base/log.h"

namespace parasol {
namespace {

constexpr size_t kAlignment = 64;  // a cache line, and the widest vector

float* AllocateFloats(size_t size) {
  if (size > (SIZE_MAX - kAlignment) / sizeof(float)) return nullptr;
  const size_t bytes =
      (size * sizeof(float) + kAlignment - 1) / kAlignment * kAlignment;
  return static_cast<float*>(std::aligned_alloc(kAlignment, bytes));
}

}  // namespace

void ArrayRef::Release() {
  if (array_ == nullptr) return;
  if (array_->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  // The array may hold the last reference to its pool.
  const std::shared_ptr<ArrayPool> pool = std::move(array_->pool);
  pool->Recycle(array_);
}

std::shared_ptr<ArrayPool> ArrayPool::Create(size_t pooled_size,
                                             size_t max_idle) {
  return std::shared_ptr<ArrayPool>(new ArrayPool(pooled_size, max_idle));
}

ArrayPool::~ArrayPool() {
  for (ArrayRef::Array* array : idle_) Free(array);
}

ArrayRef ArrayPool::TryAllocate(size_t size) {
  ArrayRef::Array* array = nullptr;
  if (size == pooled_size_) {
    absl::MutexLock lock(&mu_);
    if (!idle_.empty()) {
      array = idle_.back();
      idle_.pop_back();
    }
  }
  if (array == nullptr) {
    float* data = AllocateFloats(size);
    if (data == nullptr) return ArrayRef();
    array = new ArrayRef::Array{.data = data, .size = size};
  }
  array->references.store(1, std::memory_order_relaxed);
  array->pool = shared_from_this();
  return ArrayRef(array);
}

ArrayRef ArrayPool::Allocate(size_t size) {
  ArrayRef array = TryAllocate(size);
  CHECK(array) << "no memory for " << size << " float32";
  return array;
}

size_t ArrayPool::idle() const {
  absl::MutexLock lock(&mu_);
  return idle_.size();
}

void ArrayPool::Free(ArrayRef::Array* array) {
  std::free(array->data);
  delete array;
}

void ArrayPool::Recycle(ArrayRef::Array* array) {
  if (array->size == pooled_size_) {
    absl::MutexLock lock(&mu_);
    if (idle_.size() < max_idle_) {
      idle_.push_back(array);
      return;
    }
  }
  Free(array);
}

}  // namespace parasol
