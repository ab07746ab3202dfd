#ifndef PARASOL_ML_DEVICE_DNNL_OPERATION_H_
#define PARASOL_ML_DEVICE_DNNL_OPERATION_H_

#include <initializer_list>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ml/device/device.h"
#include "oneapi/dnnl/dnnl.hpp"

namespace parasol {

// One primitive of oneDNN on a CpuDevice, with the memory that it needs. It is
// made once and runs many times without allocating. Not thread-safe.
class DnnlOperation {
 public:
  struct Argument {
    int name;  // DNNL_ARG_...
    dnnl::memory::desc layout;
  };
  struct Description {
    dnnl::primitive_desc_base primitive;
    std::vector<Argument> arguments;
  };

  // Attributes with which every primitive's description must be made: they say
  // that the caller provides the primitive's scratch memory.
  static dnnl::primitive_attr Attributes();

  // Returns the operation that `describe` describes. `describe` is called once
  // and may throw oneDNN's exceptions.
  //   ResourceExhausted  no memory.
  //   Unimplemented      oneDNN has no such operation.
  static absl::StatusOr<DnnlOperation> Create(
      Device& device,
      absl::FunctionRef<Description(const dnnl::engine&)> describe);

  DnnlOperation() = default;

  // Runs the operation. `arguments` has one address for each argument of the
  // description, in its order.
  absl::Status Run(std::initializer_list<const float*> arguments);

 private:
  int threads_ = 1;
  dnnl::primitive primitive_;
  dnnl::stream stream_;
  Array<float> scratchpad_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

// Number of elements of `layout`, including those that fill up blocks.
inline size_t ElementsOf(const dnnl::memory::desc& layout) {
  return layout.get_size() / sizeof(float);
}

}  // namespace parasol

#endif  // PARASOL_ML_DEVICE_DNNL_OPERATION_H_
