#include "ml/device/dnnl_operation.h"

#include <omp.h>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "ml/device/cpu_device.h"

namespace parasol {
namespace {

absl::Status StatusOf(Device& device, dnnl_status_t status,
                      absl::string_view words) {
  const std::string message =
      absl::StrCat(device.name(), ": oneDNN: ", words, ", status ",
                   static_cast<int>(status));
  switch (status) {
    case dnnl_out_of_memory:
      return absl::ResourceExhaustedError(message);
    case dnnl_unimplemented:
      return absl::UnimplementedError(message);
    default:
      return absl::InternalError(message);
  }
}

}  // namespace

dnnl::primitive_attr DnnlOperation::Attributes() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

absl::StatusOr<DnnlOperation> DnnlOperation::Create(
    Device& device,
    absl::FunctionRef<Description(const dnnl::engine&)> describe) {
  DnnlOperation operation;
  operation.threads_ = static_cast<CpuDevice&>(device).threads();
  // The code that oneDNN generates and its scratchpad depend on the number.
  omp_set_num_threads(operation.threads_);
  try {
    const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    const Description description = describe(engine);
    operation.primitive_ = dnnl::primitive(description.primitive.get());
    operation.stream_ = dnnl::stream(engine);
    for (const Argument& argument : description.arguments) {
      operation.memories_.emplace_back(argument.layout, engine,
                                       static_cast<void*>(DNNL_MEMORY_NONE));
      operation.arguments_.push_back(
          {argument.name, operation.memories_.back().get()});
    }
    const dnnl::memory::desc scratchpad =
        description.primitive.scratchpad_desc();
    ASSIGN_OR_RETURN(operation.scratchpad_,
                     device.NewArray<float>(ElementsOf(scratchpad) + 1));
    operation.memories_.emplace_back(scratchpad, engine,
                                     operation.scratchpad_.data());
    operation.arguments_.push_back(
        {DNNL_ARG_SCRATCHPAD, operation.memories_.back().get()});
  } catch (const dnnl::error& error) {
    return StatusOf(device, error.status, error.what());
  }
  return operation;
}

absl::Status DnnlOperation::Run(std::initializer_list<const float*> arguments) {
  CHECK_EQ(arguments.size() + 1, memories_.size());
  // OpenMP keeps this number per calling thread, not per process.
  omp_set_num_threads(threads_);
  size_t i = 0;
  for (const float* argument : arguments) {
    dnnl_memory_set_data_handle_v2(memories_[i++].get(),
                                   const_cast<float*>(argument), stream_.get());
  }
  const dnnl_status_t status = dnnl_primitive_execute(
      primitive_.get(), stream_.get(), static_cast<int>(arguments_.size()),
      arguments_.data());
  if (status == dnnl_success) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("oneDNN could not run, status ", static_cast<int>(status)));
}

}  // namespace parasol
