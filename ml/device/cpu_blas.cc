#include "ml/device/cpu_blas.h"

#include <omp.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "oneapi/dnnl/dnnl.hpp"

namespace parasol {
namespace {

// Number of products of different shapes that are kept; a model has a handful
// for each size of batch. When there are more, all are made again.
constexpr size_t kMaxProducts = 512;

struct Key {
  int64_t m, k, n;
  Transpose transpose_a, transpose_b;

  template <typename H>
  friend H AbslHashValue(H h, const Key& key) {
    return H::combine(std::move(h), key.m, key.k, key.n, key.transpose_a,
                      key.transpose_b);
  }
  friend bool operator==(const Key&, const Key&) = default;
};

dnnl::memory::desc Describe(int64_t rows, int64_t columns,
                            Transpose transpose) {
  using Dims = dnnl::memory::dims;
  return dnnl::memory::desc(
      Dims{rows, columns}, dnnl::memory::data_type::f32,
      transpose == Transpose::kNo ? Dims{columns, 1} : Dims{1, rows});
}

struct Product {
  Product(const Key& key, const dnnl::engine& engine)
      : Product(key, engine, PrimitiveOf(key, engine)) {}

  size_t scratch_bytes;
  dnnl::memory a, b, c, scratch;
  dnnl::matmul primitive;

 private:
  Product(const Key& key, const dnnl::engine& engine,
          const dnnl::matmul::primitive_desc& description)
      : scratch_bytes(description.scratchpad_desc().get_size()),
        a(description.src_desc(), engine, nullptr),
        b(description.weights_desc(), engine, nullptr),
        c(description.dst_desc(), engine, nullptr),
        scratch(description.scratchpad_desc(), engine, nullptr),
        primitive(description) {}

  static dnnl::matmul::primitive_desc PrimitiveOf(const Key& key,
                                                  const dnnl::engine& engine) {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return dnnl::matmul::primitive_desc(
        dnnl::matmul::desc(Describe(key.m, key.k, key.transpose_a),
                           Describe(key.k, key.n, key.transpose_b),
                           Describe(key.m, key.n, Transpose::kNo)),
        attributes, engine);
  }
};

void Point(dnnl::memory& memory, const void* data) {
  memory.set_data_handle(const_cast<void*>(data));
}

}  // namespace

class CpuBlas::Primitives {
 public:
  // Throws dnnl::error.
  void Multiply(const Key& key, const float* a, const float* b, float* c) {
    Product& product = Find(key);
    Point(product.a, a);
    Point(product.b, b);
    Point(product.c, c);
    Point(product.scratch, scratch_.get_data_handle());
    const std::array<dnnl_exec_arg_t, 4> arguments = {{
        {DNNL_ARG_SRC, product.a.get()},
        {DNNL_ARG_WEIGHTS, product.b.get()},
        {DNNL_ARG_DST, product.c.get()},
        {DNNL_ARG_SCRATCHPAD, product.scratch.get()},
    }};
    dnnl::error::wrap_c_api(
        dnnl_primitive_execute(product.primitive.get(), stream_.get(),
                               arguments.size(), arguments.data()),
        "execution");
  }

 private:
  Product& Find(const Key& key) {
    if (const auto known = products_.find(key); known != products_.end()) {
      return known->second;
    }
    if (products_.size() == kMaxProducts) products_.clear();
    Product& product =
        products_.emplace(key, Product(key, engine_)).first->second;
    if (product.scratch_bytes > scratch_bytes_) {
      scratch_bytes_ = product.scratch_bytes;
      scratch_ = dnnl::memory(product.scratch.get_desc(), engine_);
    }
    return product;
  }

  const dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  const dnnl::stream stream_{engine_};
  absl::flat_hash_map<Key, Product> products_;
  // The largest that any of them needs.
  size_t scratch_bytes_ = 0;
  dnnl::memory scratch_{dnnl::memory::desc(), engine_};
};

CpuBlas::CpuBlas(int threads)
    : threads_(threads), primitives_(std::make_unique<Primitives>()) {}

CpuBlas::~CpuBlas() = default;

absl::Status CpuBlas::Multiply(MatrixView a, Transpose transpose_a,
                               MatrixView b, Transpose transpose_b,
                               MutableMatrixView c) {
  // OpenMP keeps this number per calling thread, not per process. A primitive
  // and its scratch memory are made for it.
  omp_set_num_threads(threads_);
  const Key key = {.m = c.rows,
                   .k = transpose_a == Transpose::kNo ? a.columns : a.rows,
                   .n = c.columns,
                   .transpose_a = transpose_a,
                   .transpose_b = transpose_b};
  try {
    primitives_->Multiply(key, a.data, b.data, c.data);
  } catch (const dnnl::error& error) {
    return absl::UnavailableError(
        absl::StrCat("oneDNN's product of ", key.m, "x", key.k, " by ", key.k,
                     "x", key.n, " failed: ", error.what(), ", status ",
                     static_cast<int>(error.status)));
  }
  return absl::OkStatus();
}

}  // namespace parasol
