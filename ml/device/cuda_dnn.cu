#include "absl/strings/str_cat.h"
#include "ml/device/cuda_dnn.h"

#if PARASOL_HAVE_CUDNN

#include <cuda_bf16.h>
#include <cudnn.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "absl/types/span.h"
#include "base/status_macros.h"
#include "ml/device/cuda_dnn_functions.h"
#include "ml/device/cuda_launch.h"
#include "ml/device/cuda_scratch.h"
#include "ml/device/cuda_status.h"

namespace parasol {
namespace {

// A faster algorithm that wants more is passed over.
constexpr size_t kMaxWorkspaceBytes = size_t{1} << 30;
constexpr int kMaxAlgorithms = 16;
constexpr int kTile = 32;

// CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED of cuDNN 9, and the kind
// of its CUDNN_STATUS_NOT_INITIALIZED.
constexpr int kDeviceIsFull = 4004;
constexpr int kNotInitialized = 1000;

// From cuDNN 9 on the thousands of a status are its kind, and the rest says
// which of that kind.
constexpr int KindOf(cudnnStatus_t status) {
  return status < 1000 ? status : status / 1000 * 1000;
}

absl::Status Check(cudnnStatus_t status, absl::string_view what) {
  if (status == CUDNN_STATUS_SUCCESS) return absl::OkStatus();
  const std::string words =
      absl::StrCat(what, ": cuDNN status ", static_cast<int>(status));
  if (status == CUDNN_STATUS_ALLOC_FAILED || status == kDeviceIsFull) {
    return absl::ResourceExhaustedError(words);
  }
  switch (KindOf(status)) {
    case CUDNN_STATUS_NOT_SUPPORTED:
    case CUDNN_STATUS_BAD_PARAM:
      return absl::UnimplementedError(words);
    default:
      return absl::UnavailableError(words);
  }
}

// A part of cuDNN is missing, or is of another version.
bool IsIncomplete(cudnnStatus_t status) {
  return KindOf(status) == kNotInitialized;
}

// float32 with the 16 bits of bfloat16; TF32, which has more, keeps them all.
__device__ float Rounded(float value) {
  return __bfloat162float(__float2bfloat16_rn(value));
}

struct RoundEach {
  const float* from;
  float* to;
  __device__ void operator()(int64_t i) const { to[i] = Rounded(from[i]); }
};

// to[columns, rows] = from[rows, columns] transposed, a tile at a time, so that
// both are touched along their rows. Blocks are counted along x alone, which
// may have more than 65,535.
template <bool kRound>
__global__ void TransposeKernel(const float* from, int64_t rows,
                                int64_t columns, float* to) {
  __shared__ float tile[kTile][kTile + 1];
  const int64_t tiles = (columns + kTile - 1) / kTile;
  const int64_t row = blockIdx.x / tiles * kTile;
  const int64_t column = blockIdx.x % tiles * kTile;
  const int x = threadIdx.x;
  for (int y = threadIdx.y; y < kTile; y += blockDim.y) {
    if (row + y < rows && column + x < columns) {
      tile[y][x] = from[(row + y) * columns + column + x];
    }
  }
  __syncthreads();
  for (int y = threadIdx.y; y < kTile; y += blockDim.y) {
    if (column + y < columns && row + x < rows) {
      const float value = tile[x][y];
      to[(column + y) * rows + row + x] = kRound ? Rounded(value) : value;
    }
  }
}

// State shared by the convolutions of one device. They run one after the other,
// so one scratch of each kind serves all.
struct Shared {
  Shared(const DnnFunctions& functions, CUstream_st* stream,
         Precision precision, uint64_t& releases)
      : f(functions),
        stream(stream),
        precision(precision),
        workspace(stream, releases),
        kernel(stream, releases),
        x(stream, releases),
        dy(stream, releases) {}
  ~Shared() {
    if (handle != nullptr) f.destroy(handle);
  }

  bool rounds() const { return precision == Precision::kBfloat16; }

  const DnnFunctions f;
  CUstream_st* const stream;
  const Precision precision;
  cudnnHandle_t handle = nullptr;
  CudaScratch workspace;
  CudaScratch kernel, x, dy;  // as cuDNN reads or writes them
};

// One of the three passes: how cuDNN computes it.
template <typename Algorithm>
struct Choice {
  Algorithm algorithm = {};
  cudnnMathType_t math = CUDNN_FMA_MATH;
  size_t workspace_bytes = 0;
};

struct Choices {
  Choice<cudnnConvolutionFwdAlgo_t> forward;
  Choice<cudnnConvolutionBwdFilterAlgo_t> kernel;
  Choice<cudnnConvolutionBwdDataAlgo_t> input;
};

class Descriptors {
 public:
  explicit Descriptors(const DnnFunctions& f) : f_(f) {}
  Descriptors(const Descriptors&) = delete;
  Descriptors& operator=(const Descriptors&) = delete;
  ~Descriptors() {
    if (x != nullptr) f_.destroy_tensor(x);
    if (y != nullptr) f_.destroy_tensor(y);
    if (kernel != nullptr) f_.destroy_filter(kernel);
    for (cudnnConvolutionDescriptor_t pass :
         {forward, kernel_gradient, input_gradient}) {
      if (pass != nullptr) f_.destroy_convolution(pass);
    }
  }

  absl::Status Describe(const DnnConvolutionShape& s, cudnnMathType_t math) {
    RETURN_IF_ERROR(Check(f_.create_tensor(&x), "descriptor of x"));
    RETURN_IF_ERROR(Check(f_.create_tensor(&y), "descriptor of y"));
    RETURN_IF_ERROR(Check(f_.create_filter(&kernel), "descriptor of kernel"));
    RETURN_IF_ERROR(
        Tensor(x, s.examples, s.channels, s.height.input, s.width.input));
    RETURN_IF_ERROR(
        Tensor(y, s.examples, s.filters, s.height.output, s.width.output));
    RETURN_IF_ERROR(Check(
        f_.set_filter(kernel, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NHWC, s.filters,
                      s.channels, s.height.window, s.width.window),
        "kernel"));
    for (cudnnConvolutionDescriptor_t* pass :
         {&forward, &kernel_gradient, &input_gradient}) {
      RETURN_IF_ERROR(Check(f_.create_convolution(pass), "descriptor"));
      RETURN_IF_ERROR(
          Check(f_.set_convolution(*pass, s.height.padding, s.width.padding,
                                   s.height.stride, s.width.stride,
                                   /*dilation_h=*/1, /*dilation_w=*/1,
                                   CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
                "convolution"));
      RETURN_IF_ERROR(Check(f_.set_math_type(*pass, math), "math type"));
    }
    return absl::OkStatus();
  }

  cudnnTensorDescriptor_t x = nullptr, y = nullptr;
  cudnnFilterDescriptor_t kernel = nullptr;
  cudnnConvolutionDescriptor_t forward = nullptr, kernel_gradient = nullptr,
                               input_gradient = nullptr;

 private:
  absl::Status Tensor(cudnnTensorDescriptor_t tensor, int64_t examples,
                      int64_t channels, int64_t height, int64_t width) {
    return Check(f_.set_tensor(tensor, CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT,
                               examples, channels, height, width),
                 "tensor");
  }

  const DnnFunctions& f_;
};

// `results` come fastest first.
template <typename Algorithm, typename Result>
absl::StatusOr<Choice<Algorithm>> Fastest(absl::Span<const Result> results,
                                          Precision precision,
                                          absl::string_view pass) {
  for (const Result& result : results) {
    const bool float32 = result.mathType == CUDNN_FMA_MATH ||
                         result.mathType == CUDNN_DEFAULT_MATH;
    if (result.status == CUDNN_STATUS_SUCCESS &&
        result.determinism == CUDNN_DETERMINISTIC &&
        result.memory <= kMaxWorkspaceBytes &&
        (precision != Precision::kFloat32 || float32)) {
      return Choice<Algorithm>{.algorithm = result.algo,
                               .math = precision == Precision::kFloat32
                                           ? CUDNN_FMA_MATH
                                           : result.mathType,
                               .workspace_bytes = result.memory};
    }
  }
  return absl::UnimplementedError(absl::StrCat(
      "cuDNN has no algorithm that repeats itself for the ", pass));
}

// Takes memory of its own for as long as it lasts.
absl::StatusOr<Choices> Search(const Shared& shared, const Descriptors& d) {
  const DnnFunctions& f = shared.f;
  Choices choices;
  int found = 0;
  std::array<cudnnConvolutionFwdAlgoPerf_t, kMaxAlgorithms> forward;
  RETURN_IF_ERROR(
      Check(f.find_forward(shared.handle, d.x, d.kernel, d.forward, d.y,
                           kMaxAlgorithms, &found, forward.data()),
            "search"));
  ASSIGN_OR_RETURN(choices.forward,
                   (Fastest<cudnnConvolutionFwdAlgo_t>(
                       absl::MakeConstSpan(forward.data(), found),
                       shared.precision, "forward pass")));
  std::array<cudnnConvolutionBwdFilterAlgoPerf_t, kMaxAlgorithms> kernel;
  RETURN_IF_ERROR(
      Check(f.find_kernel(shared.handle, d.x, d.y, d.kernel_gradient, d.kernel,
                          kMaxAlgorithms, &found, kernel.data()),
            "search"));
  ASSIGN_OR_RETURN(choices.kernel,
                   (Fastest<cudnnConvolutionBwdFilterAlgo_t>(
                       absl::MakeConstSpan(kernel.data(), found),
                       shared.precision, "kernel's gradient")));
  std::array<cudnnConvolutionBwdDataAlgoPerf_t, kMaxAlgorithms> input;
  RETURN_IF_ERROR(
      Check(f.find_input(shared.handle, d.kernel, d.y, d.input_gradient, d.x,
                         kMaxAlgorithms, &found, input.data()),
            "search"));
  ASSIGN_OR_RETURN(choices.input, (Fastest<cudnnConvolutionBwdDataAlgo_t>(
                                      absl::MakeConstSpan(input.data(), found),
                                      shared.precision, "input's gradient")));
  return choices;
}

class LoadedConvolution : public DnnConvolution {
 public:
  LoadedConvolution(Shared& shared, const DnnConvolutionShape& shape)
      : shared_(shared), shape_(shape), descriptors_(shared.f) {}

  absl::Status Describe() {
    return descriptors_.Describe(
        shape_, shared_.precision == Precision::kFloat32 ? CUDNN_FMA_MATH
                                                         : CUDNN_DEFAULT_MATH);
  }
  const Descriptors& descriptors() const { return descriptors_; }

  // Takes the memory now that the passes will need.
  absl::Status Choose(const Choices& choices) {
    choices_ = choices;
    RETURN_IF_ERROR(FixMath());
    RETURN_IF_ERROR(MeasureWorkspaces());
    RETURN_IF_ERROR(shared_.workspace
                        .Reserve(std::max({choices_.forward.workspace_bytes,
                                           choices_.kernel.workspace_bytes,
                                           choices_.input.workspace_bytes}))
                        .status());
    RETURN_IF_ERROR(
        shared_.kernel.Reserve(KernelSize() * sizeof(float)).status());
    if (!shared_.rounds()) return absl::OkStatus();
    RETURN_IF_ERROR(shared_.x.Reserve(XSize() * sizeof(float)).status());
    return shared_.dy.Reserve(YSize() * sizeof(float)).status();
  }

  absl::Status Forward(const float* x, const float* kernel, float* y) override {
    const Choice<cudnnConvolutionFwdAlgo_t>& choice = choices_.forward;
    ASSIGN_OR_RETURN(const float* const in, Factor(x, XSize(), shared_.x));
    ASSIGN_OR_RETURN(const float* const filters, FiltersFirst(kernel));
    ASSIGN_OR_RETURN(void* const workspace,
                     shared_.workspace.Reserve(choice.workspace_bytes));
    return Check(
        shared_.f.forward(shared_.handle, &kOne, descriptors_.x, in,
                          descriptors_.kernel, filters, descriptors_.forward,
                          choice.algorithm, workspace, choice.workspace_bytes,
                          &kZero, descriptors_.y, y),
        "cudnnConvolutionForward");
  }

  absl::Status KernelGradient(const float* x, const float* dy,
                              float* dkernel) override {
    const Choice<cudnnConvolutionBwdFilterAlgo_t>& choice = choices_.kernel;
    ASSIGN_OR_RETURN(const float* const in, Factor(x, XSize(), shared_.x));
    ASSIGN_OR_RETURN(const float* const out, Factor(dy, YSize(), shared_.dy));
    ASSIGN_OR_RETURN(void* const workspace,
                     shared_.workspace.Reserve(choice.workspace_bytes));
    ASSIGN_OR_RETURN(void* const filters,
                     shared_.kernel.Reserve(KernelSize() * sizeof(float)));
    RETURN_IF_ERROR(Check(
        shared_.f.kernel_gradient(
            shared_.handle, &kOne, descriptors_.x, in, descriptors_.y, out,
            descriptors_.kernel_gradient, choice.algorithm, workspace,
            choice.workspace_bytes, &kZero, descriptors_.kernel, filters),
        "cudnnConvolutionBackwardFilter"));
    return Transpose<false>(static_cast<const float*>(filters), shape_.filters,
                            WindowSize(), dkernel);
  }

  absl::Status InputGradient(const float* dy, const float* kernel,
                             float* dx) override {
    const Choice<cudnnConvolutionBwdDataAlgo_t>& choice = choices_.input;
    ASSIGN_OR_RETURN(const float* const out, Factor(dy, YSize(), shared_.dy));
    ASSIGN_OR_RETURN(const float* const filters, FiltersFirst(kernel));
    ASSIGN_OR_RETURN(void* const workspace,
                     shared_.workspace.Reserve(choice.workspace_bytes));
    return Check(
        shared_.f.input_gradient(
            shared_.handle, &kOne, descriptors_.kernel, filters, descriptors_.y,
            out, descriptors_.input_gradient, choice.algorithm, workspace,
            choice.workspace_bytes, &kZero, descriptors_.x, dx),
        "cudnnConvolutionBackwardData");
  }

 private:
  static constexpr float kOne = 1;
  static constexpr float kZero = 0;

  absl::Status FixMath() {
    const DnnFunctions& f = shared_.f;
    const Descriptors& d = descriptors_;
    RETURN_IF_ERROR(
        Check(f.set_math_type(d.forward, choices_.forward.math), "math type"));
    RETURN_IF_ERROR(Check(
        f.set_math_type(d.kernel_gradient, choices_.kernel.math), "math type"));
    return Check(f.set_math_type(d.input_gradient, choices_.input.math),
                 "math type");
  }

  // The search tries other math types too, whose needs may differ.
  absl::Status MeasureWorkspaces() {
    const DnnFunctions& f = shared_.f;
    const Descriptors& d = descriptors_;
    RETURN_IF_ERROR(
        Check(f.forward_bytes(shared_.handle, d.x, d.kernel, d.forward, d.y,
                              choices_.forward.algorithm,
                              &choices_.forward.workspace_bytes),
              "workspace"));
    RETURN_IF_ERROR(
        Check(f.kernel_bytes(shared_.handle, d.x, d.y, d.kernel_gradient,
                             d.kernel, choices_.kernel.algorithm,
                             &choices_.kernel.workspace_bytes),
              "workspace"));
    return Check(f.input_bytes(shared_.handle, d.kernel, d.y, d.input_gradient,
                               d.x, choices_.input.algorithm,
                               &choices_.input.workspace_bytes),
                 "workspace");
  }

  int64_t WindowSize() const {
    return shape_.height.window * shape_.width.window * shape_.channels;
  }
  int64_t KernelSize() const { return WindowSize() * shape_.filters; }
  int64_t XSize() const {
    return shape_.examples * shape_.height.input * shape_.width.input *
           shape_.channels;
  }
  int64_t YSize() const {
    return shape_.examples * shape_.height.output * shape_.width.output *
           shape_.filters;
  }

  template <bool kRound>
  absl::Status Transpose(const float* from, int64_t rows, int64_t columns,
                         float* to) {
    const int64_t blocks =
        ((columns + kTile - 1) / kTile) * ((rows + kTile - 1) / kTile);
    cuda::Launch(TransposeKernel<kRound>, blocks, dim3(kTile, 8),
                 shared_.stream, from, rows, columns, to);
    return LaunchStatus("transposition of a kernel");
  }

  absl::StatusOr<const float*> FiltersFirst(const float* kernel) {
    ASSIGN_OR_RETURN(void* const memory,
                     shared_.kernel.Reserve(KernelSize() * sizeof(float)));
    float* const to = static_cast<float*>(memory);
    RETURN_IF_ERROR(
        shared_.rounds()
            ? Transpose<true>(kernel, WindowSize(), shape_.filters, to)
            : Transpose<false>(kernel, WindowSize(), shape_.filters, to));
    return to;
  }

  absl::StatusOr<const float*> Factor(const float* values, int64_t size,
                                      CudaScratch& rounded) {
    if (!shared_.rounds()) return values;
    ASSIGN_OR_RETURN(void* const memory, rounded.Reserve(size * sizeof(float)));
    float* const to = static_cast<float*>(memory);
    RETURN_IF_ERROR(cuda::ForEach(shared_.stream, "rounding to bfloat16", size,
                                  RoundEach{values, to}));
    return to;
  }

  Shared& shared_;
  const DnnConvolutionShape shape_;
  Descriptors descriptors_;
  Choices choices_;
};

class LoadedDnn : public CudaDnn {
 public:
  LoadedDnn(const DnnFunctions& functions, CUstream_st* stream,
            Precision precision, uint64_t& releases)
      : shared_(functions, stream, precision, releases) {}

  absl::Status Start() {
    const cudnnStatus_t created = shared_.f.create(&shared_.handle);
    if (IsIncomplete(created)) {
      return absl::FailedPreconditionError(
          absl::StrCat("cuDNN is not complete: status ", created));
    }
    RETURN_IF_ERROR(Check(created, "cudnnCreate"));
    return Check(shared_.f.set_stream(shared_.handle, shared_.stream),
                 "cudnnSetStream");
  }

  absl::StatusOr<std::unique_ptr<DnnConvolution>> NewConvolution(
      const DnnConvolutionShape& shape) override {
    auto convolution = std::make_unique<LoadedConvolution>(shared_, shape);
    RETURN_IF_ERROR(convolution->Describe());
    auto known = choices_.find(shape);
    if (known == choices_.end()) {
      ASSIGN_OR_RETURN(const Choices choices,
                       Search(shared_, convolution->descriptors()));
      known = choices_.emplace(shape, choices).first;
    }
    RETURN_IF_ERROR(convolution->Choose(known->second));
    return convolution;
  }

 private:
  Shared shared_;
  std::map<DnnConvolutionShape, Choices> choices_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CudaDnn>> CudaDnn::Open(CUstream_st* stream,
                                                       Precision precision,
                                                       uint64_t& releases) {
  ASSIGN_OR_RETURN(const DnnFunctions functions, LoadDnn());
  auto dnn =
      std::make_unique<LoadedDnn>(functions, stream, precision, releases);
  RETURN_IF_ERROR(dnn->Start());
  return dnn;
}

}  // namespace parasol

#else

namespace parasol {

absl::StatusOr<std::unique_ptr<CudaDnn>> CudaDnn::Open(CUstream_st* stream,
                                                       Precision precision,
                                                       uint64_t& releases) {
  return absl::FailedPreconditionError("this binary was built without cuDNN");
}

}  // namespace parasol

#endif  // PARASOL_HAVE_CUDNN
