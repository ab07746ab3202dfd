#if PARASOL_HAVE_CUDNN

#include "absl/strings/str_cat.h"
#include "ml/device/cuda_dnn_plan.h"

namespace parasol {
namespace {

// How many choices of the heuristics are looked at.
constexpr int64_t kMaxChoices = 64;
constexpr int64_t kMaxNotes = 16;

// Names of the arrays in a graph.
constexpr int64_t kX = 1;
constexpr int64_t kKernel = 2;
constexpr int64_t kY = 3;

// A pass's operation and its attributes.
struct PassNames {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t x, kernel, y, convolution, alpha, beta;
  absl::string_view words;
};

const PassNames& NamesOf(DnnPass pass) {
  static constexpr PassNames kForward = {
      CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
      "forward pass"};
  static constexpr PassNames kKernelGradient = {
      CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
      "kernel's gradient"};
  static constexpr PassNames kInputGradient = {
      CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
      "input's gradient"};
  switch (pass) {
    case DnnPass::kForward:
      return kForward;
    case DnnPass::kKernelGradient:
      return kKernelGradient;
    case DnnPass::kInputGradient:
      break;
  }
  return kInputGradient;
}

// Makes the descriptors that a plan is made of, and keeps them.
class DnnGraphBuilder {
 public:
  DnnGraphBuilder(const DnnFunctions& f, cudnnHandle_t handle,
                  cudnnDataType_t type)
      : f_(f), handle_(handle), type_(type) {}

  // Returns a graph of the one operation `pass`.
  absl::StatusOr<const DnnDescriptor*> Graph(DnnPass pass,
                                             const DnnConvolutionShape& s) {
    ASSIGN_OR_RETURN(
        const cudnnBackendDescriptor_t x,
        Array(kX, s.examples, s.channels, s.height.input, s.width.input));
    ASSIGN_OR_RETURN(
        const cudnnBackendDescriptor_t kernel,
        Array(kKernel, s.filters, s.channels, s.height.window, s.width.window));
    ASSIGN_OR_RETURN(
        const cudnnBackendDescriptor_t y,
        Array(kY, s.examples, s.filters, s.height.output, s.width.output));
    ASSIGN_OR_RETURN(const cudnnBackendDescriptor_t convolution,
                     Convolution(s));
    const PassNames& names = NamesOf(pass);
    ASSIGN_OR_RETURN(DnnDescriptor operation,
                     DnnDescriptor::Create(f_, names.operation));
    for (const auto& [name, part] :
         {std::pair(names.x, x), std::pair(names.kernel, kernel),
          std::pair(names.y, y), std::pair(names.convolution, convolution)}) {
      RETURN_IF_ERROR(operation.Set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, part));
    }
    RETURN_IF_ERROR(operation.Set(names.alpha, CUDNN_TYPE_FLOAT, 1.0f));
    RETURN_IF_ERROR(operation.Set(names.beta, CUDNN_TYPE_FLOAT, 0.0f));
    ASSIGN_OR_RETURN(const cudnnBackendDescriptor_t finished,
                     Finish(std::move(operation), names.words));
    ASSIGN_OR_RETURN(
        DnnDescriptor graph,
        DnnDescriptor::Create(f_, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR));
    RETURN_IF_ERROR(graph.Set(CUDNN_ATTR_OPERATIONGRAPH_OPS,
                              CUDNN_TYPE_BACKEND_DESCRIPTOR, finished));
    RETURN_IF_ERROR(graph.Set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE,
                              CUDNN_TYPE_HANDLE, handle_));
    RETURN_IF_ERROR(Finish(std::move(graph), "graph").status());
    return &parts_.back();
  }

  std::vector<DnnDescriptor> TakeParts() { return std::move(parts_); }

 private:
  absl::StatusOr<cudnnBackendDescriptor_t> Finish(DnnDescriptor part,
                                                  absl::string_view what) {
    RETURN_IF_ERROR(part.Finalize(what));
    parts_.push_back(std::move(part));
    return parts_.back().get();
  }

  // An NHWC array; cuDNN counts axes in the order NCHW.
  absl::StatusOr<cudnnBackendDescriptor_t> Array(int64_t name, int64_t n,
                                                 int64_t c, int64_t h,
                                                 int64_t w) {
    ASSIGN_OR_RETURN(
        DnnDescriptor array,
        DnnDescriptor::Create(f_, CUDNN_BACKEND_TENSOR_DESCRIPTOR));
    const std::array<int64_t, 4> axes = {n, c, h, w};
    const std::array<int64_t, 4> strides = {h * w * c, 1, w * c, c};
    RETURN_IF_ERROR(
        array.Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, name));
    RETURN_IF_ERROR(
        array.Set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type_));
    RETURN_IF_ERROR(array.Set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64,
                              absl::MakeConstSpan(axes)));
    RETURN_IF_ERROR(array.Set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64,
                              absl::MakeConstSpan(strides)));
    RETURN_IF_ERROR(array.Set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT,
                              CUDNN_TYPE_INT64, DnnPlan::kAlignment));
    return Finish(std::move(array), "array");
  }

  absl::StatusOr<cudnnBackendDescriptor_t> Convolution(
      const DnnConvolutionShape& s) {
    ASSIGN_OR_RETURN(
        DnnDescriptor convolution,
        DnnDescriptor::Create(f_, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR));
    const auto set_axes = [&convolution](cudnnBackendAttributeName_t name,
                                         int64_t height, int64_t width) {
      const std::array<int64_t, 2> axes = {height, width};
      return convolution.Set(name, CUDNN_TYPE_INT64, absl::MakeConstSpan(axes));
    };
    RETURN_IF_ERROR(convolution.Set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS,
                                    CUDNN_TYPE_INT64, int64_t{2}));
    RETURN_IF_ERROR(convolution.Set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE,
                                    CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT));
    RETURN_IF_ERROR(convolution.Set(CUDNN_ATTR_CONVOLUTION_CONV_MODE,
                                    CUDNN_TYPE_CONVOLUTION_MODE,
                                    CUDNN_CROSS_CORRELATION));
    RETURN_IF_ERROR(set_axes(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS,
                             s.height.before, s.width.before));
    RETURN_IF_ERROR(set_axes(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS,
                             s.height.after, s.width.after));
    RETURN_IF_ERROR(set_axes(CUDNN_ATTR_CONVOLUTION_DILATIONS, 1, 1));
    RETURN_IF_ERROR(set_axes(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES,
                             s.height.stride, s.width.stride));
    return Finish(std::move(convolution), "convolution");
  }

  const DnnFunctions& f_;
  const cudnnHandle_t handle_;
  const cudnnDataType_t type_;
  std::vector<DnnDescriptor> parts_;
};

// Returns cuDNN's choices for a graph, the one that it expects to be the
// fastest first.
absl::StatusOr<std::vector<DnnDescriptor>> ChoicesOf(
    const DnnFunctions& f, const DnnDescriptor& graph,
    cudnnBackendHeurMode_t mode) {
  ASSIGN_OR_RETURN(
      DnnDescriptor heuristics,
      DnnDescriptor::Create(f, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR));
  RETURN_IF_ERROR(heuristics.Set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph));
  RETURN_IF_ERROR(
      heuristics.Set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode));
  RETURN_IF_ERROR(heuristics.Finalize("heuristics"));
  std::vector<DnnDescriptor> choices;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (int64_t i = 0; i < kMaxChoices; ++i) {
    ASSIGN_OR_RETURN(
        DnnDescriptor choice,
        DnnDescriptor::Create(f, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    handles.push_back(choice.get());
    choices.push_back(std::move(choice));
  }
  ASSIGN_OR_RETURN(
      const int64_t count,
      heuristics.Get(CUDNN_ATTR_ENGINEHEUR_RESULTS,
                     CUDNN_TYPE_BACKEND_DESCRIPTOR, absl::MakeSpan(handles)));
  choices.erase(choices.begin() + count, choices.end());
  return choices;
}

// Whether the choice's results are the same every time, and as exact as the
// sums of its factors in float32.
absl::StatusOr<bool> IsWanted(const DnnFunctions& f,
                              const DnnDescriptor& choice) {
  ASSIGN_OR_RETURN(const DnnDescriptor engine,
                   DnnDescriptor::Create(f, CUDNN_BACKEND_ENGINE_DESCRIPTOR));
  cudnnBackendDescriptor_t handle = engine.get();
  RETURN_IF_ERROR(choice
                      .Get(CUDNN_ATTR_ENGINECFG_ENGINE,
                           CUDNN_TYPE_BACKEND_DESCRIPTOR,
                           absl::MakeSpan(&handle, 1))
                      .status());
  std::array<cudnnBackendNumericalNote_t, kMaxNotes> notes;
  ASSIGN_OR_RETURN(
      const int64_t count,
      engine.Get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                 absl::MakeSpan(notes)));
  return std::none_of(
      notes.begin(), notes.begin() + count,
      [](cudnnBackendNumericalNote_t note) {
        return note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC ||
               note == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION ||
               note == CUDNN_NUMERICAL_NOTE_FFT ||
               note == CUDNN_NUMERICAL_NOTE_WINOGRAD;
      });
}

struct FinishedPlan {
  DnnDescriptor plan;
  int64_t workspace_bytes = 0;
};

absl::StatusOr<FinishedPlan> FinishPlan(const DnnFunctions& f,
                                        cudnnHandle_t handle,
                                        const DnnDescriptor& choice) {
  ASSIGN_OR_RETURN(
      DnnDescriptor plan,
      DnnDescriptor::Create(f, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR));
  RETURN_IF_ERROR(plan.Set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, choice));
  RETURN_IF_ERROR(
      plan.Set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle));
  RETURN_IF_ERROR(plan.Finalize("plan"));
  int64_t bytes = 0;
  RETURN_IF_ERROR(plan.Get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                           CUDNN_TYPE_INT64, absl::MakeSpan(&bytes, 1))
                      .status());
  return FinishedPlan{std::move(plan), bytes};
}

}  // namespace

absl::StatusOr<DnnPlan> DnnPlan::Create(const DnnFunctions& f,
                                        cudnnHandle_t handle, DnnPass pass,
                                        const DnnConvolutionShape& shape,
                                        cudnnDataType_t type,
                                        int64_t max_workspace_bytes) {
  DnnGraphBuilder builder(f, handle, type);
  ASSIGN_OR_RETURN(const DnnDescriptor* const graph,
                   builder.Graph(pass, shape));
  for (const cudnnBackendHeurMode_t mode :
       {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    ASSIGN_OR_RETURN(std::vector<DnnDescriptor> choices,
                     ChoicesOf(f, *graph, mode));
    for (DnnDescriptor& choice : choices) {
      ASSIGN_OR_RETURN(const bool is_wanted, IsWanted(f, choice));
      if (!is_wanted) continue;
      absl::StatusOr<FinishedPlan> plan = FinishPlan(f, handle, choice);
      if (absl::IsUnimplemented(plan.status())) continue;
      RETURN_IF_ERROR(plan.status());
      if (plan->workspace_bytes > max_workspace_bytes) continue;
      std::vector<DnnDescriptor> parts = builder.TakeParts();
      parts.push_back(std::move(choice));
      return DnnPlan(f, handle, std::move(parts), std::move(plan->plan),
                     plan->workspace_bytes);
    }
  }
  return absl::UnimplementedError(absl::StrCat(
      "cuDNN has no plan that repeats itself for the ", NamesOf(pass).words));
}

absl::Status DnnPlan::Run(void* x, void* kernel, void* y,
                          void* workspace) const {
  ASSIGN_OR_RETURN(
      DnnDescriptor arrays,
      DnnDescriptor::Create(*f_, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR));
  const std::array<int64_t, 3> names = {kX, kKernel, kY};
  const std::array<void*, 3> pointers = {x, kernel, y};
  RETURN_IF_ERROR(arrays.Set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS,
                             CUDNN_TYPE_INT64, absl::MakeConstSpan(names)));
  RETURN_IF_ERROR(arrays.Set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
                             CUDNN_TYPE_VOID_PTR,
                             absl::MakeConstSpan(pointers)));
  RETURN_IF_ERROR(arrays.Set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE,
                             CUDNN_TYPE_VOID_PTR, workspace));
  RETURN_IF_ERROR(arrays.Finalize("arrays"));
  return DnnStatus(f_->execute(handle_, plan_.get(), arrays.get()),
                   "convolution");
}

}  // namespace parasol

#endif  // PARASOL_HAVE_CUDNN
