#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ml/device/cuda_column_sums.h"
#include "ml/device/cuda_device.h"
#include "ml/device/cuda_dnn.h"
#include "ml/device/cuda_launch.h"
#include "ml/device/cuda_pack.h"
#include "ml/kernel/affine.h"
#include "ml/kernel/image/convolution.h"
#include "ml/kernel/image/window_products.h"

namespace parasol::cuda {
namespace {

// Tiles, of which the first that fits is taken. Measured on an H100, where each
// was the fastest for layers of its kind.
using NarrowTile = TileSize<32, 16, 32, 2, 4>;  // at most 16 columns
using LargeTile = TileSize<64, 64, 16, 4, 4>;   // products of many tiles
using MediumTile = TileSize<32, 32, 32, 2, 4>;  // at most 32 columns
using WideTile = TileSize<16, 64, 32, 2, 4>;
using TallTile = TileSize<64, 32, 16, 4, 4>;  // for gradients of kernels

// Blocks that keep a large device busy: two for each multiprocessor, or what
// hides the latency of short sums.
constexpr int64_t kManyBlocks = 264;
constexpr int64_t kSlicedBlocks = 704;
constexpr int64_t kMaxSlices = 256;
// Fewest rows of a slice, so that its part is worth another sum.
constexpr int64_t kRowsOfASlice = 64;

// What a product's sums become.
template <typename T>
struct Output {
  T* y;
  int rows;
  int columns;
  const float* bias = nullptr;  // null for none
  bool relu = false;
  __device__ void operator()(int row, int column, float value) const {
    if (row >= rows || column >= columns) return;
    if (bias != nullptr) value += bias[column];
    if (relu) value = value < 0 ? 0 : value;
    y[int64_t{row} * columns + column] = Rounded<T>(value);
  }
};

template <typename T, typename Size, int kLeft, int kRight>
__global__ void ForwardKernel(WindowMatrix<T> windows,
                              RightMatrix<float> kernel, Output<T> output) {
  MultiplyTile<Size, WindowRows<T, Size, kLeft, false>,
               MatrixRows<float, Size, kRight>>(windows, kernel, output.rows, 0,
                                                windows.columns, output);
}

template <typename T, typename Size, int kWidth>
__global__ void InputGradientKernel(WindowMatrix<T> windows,
                                    TurnedKernel kernel, Output<T> output) {
  MultiplyTile<Size, WindowRows<T, Size, kWidth, true>,
               TurnedRows<Size, kWidth>>(windows, kernel, output.rows, 0,
                                         windows.columns, output);
}

// Block z computes the part of the rows [z · slice, (z + 1) · slice), for the
// z-th of outputs that lie behind each other.
template <typename T, typename Size, int kLeft, int kRight>
__global__ void KernelGradientKernel(WindowMatrix<T> windows, RightMatrix<T> dy,
                                     int slice, Output<float> output) {
  const int first = static_cast<int>(blockIdx.z) * slice;
  const int end = windows.rows - first < slice ? windows.rows : first + slice;
  output.y += int64_t{blockIdx.z} * output.rows * output.columns;
  MultiplyTile<Size, WindowColumns<T, Size, kLeft>,
               MatrixRows<T, Size, kRight>>(windows, dy, output.rows, first,
                                            end, output);
}

template <typename T, typename Size>
auto ForwardKernelOf(bool left, bool right) {
  if (left) {
    return right ? ForwardKernel<T, Size, kPackWidth, kPackWidth>
                 : ForwardKernel<T, Size, kPackWidth, 1>;
  }
  return right ? ForwardKernel<T, Size, 1, kPackWidth>
               : ForwardKernel<T, Size, 1, 1>;
}

template <typename T, typename Size>
auto KernelGradientKernelOf(bool left, bool right) {
  if (left) {
    return right ? KernelGradientKernel<T, Size, kPackWidth, kPackWidth>
                 : KernelGradientKernel<T, Size, kPackWidth, 1>;
  }
  return right ? KernelGradientKernel<T, Size, 1, kPackWidth>
               : KernelGradientKernel<T, Size, 1, 1>;
}

int64_t Ceiling(int64_t dividend, int64_t divisor) {
  return (dividend + divisor - 1) / divisor;
}

template <typename Size>
int64_t CountTiles(int64_t rows, int64_t columns) {
  return Ceiling(rows, Size::kM) * Ceiling(columns, Size::kN);
}

template <typename Size, typename T>
dim3 BlocksOf(const Output<T>& output, int64_t slices = 1) {
  return dim3(CountTiles<Size>(output.rows, output.columns), 1, slices);
}

// Returns launch.operator()<Size>() with the size of tile for `output`.
template <typename T, typename Launcher>
absl::Status WithTile(const Output<T>& output, const Launcher& launch) {
  if (output.columns <= NarrowTile::kN) {
    return launch.template operator()<NarrowTile>();
  }
  if (CountTiles<LargeTile>(output.rows, output.columns) >= kManyBlocks) {
    return launch.template operator()<LargeTile>();
  }
  if (output.columns <= MediumTile::kN) {
    return launch.template operator()<MediumTile>();
  }
  return launch.template operator()<WideTile>();
}

GatherAxis Forward(const WindowAxis& axis) {
  return {.input = static_cast<int>(axis.input),
          .output = static_cast<int>(axis.output),
          .window = static_cast<int>(axis.window),
          .stride = static_cast<int>(axis.stride),
          .before = static_cast<int>(axis.before)};
}

// The axis along which pixels gather from windows.
GatherAxis Backward(const WindowAxis& axis) {
  GatherAxis gather = Forward(axis);
  std::swap(gather.input, gather.output);
  return gather;
}

// A convolution by the kernels of this file, in float32 whatever the device's
// precision and the type of the images.
class WindowConvolution : public Convolution {
 public:
  WindowConvolution(CudaDevice& device, const ConvolutionShape& shape,
                    const Options& options)
      : device_(device), shape_(shape), options_(options) {}

  absl::Status Forward(ConstElements x, const float* kernel, const float* bias,
                       Elements y) override {
    return WithEdgeType(x.type(), [&]<typename T>() {
      return Forward(x.As<T>(), kernel, bias, y.As<T>());
    });
  }

  absl::Status VariableGradients(ConstElements x, ConstElements dy,
                                 float* dkernel, float* dbias) override {
    RETURN_IF_ERROR(WithEdgeType(x.type(), [&]<typename T>() {
      return KernelGradient(x.As<T>(), dy.As<T>(), dkernel);
    }));
    if (!options_.has_bias) return absl::OkStatus();
    return cuda::SumRows(device_, dy, shape_.outputs(), shape_.filters, dbias);
  }

  absl::Status InputGradient(ConstElements dy, const float* kernel,
                             Elements dx) override {
    return WithEdgeType(dy.type(), [&]<typename T>() {
      return InputGradient(dy.As<T>(), kernel, dx.As<T>());
    });
  }

 private:
  int Rows() const { return static_cast<int>(shape_.outputs()); }
  int WindowSize() const { return static_cast<int>(shape_.window_size()); }
  int Channels() const { return static_cast<int>(shape_.channels); }
  int Filters() const { return static_cast<int>(shape_.filters); }

  template <typename T>
  WindowMatrix<T> WindowsOf(const T* x) const {
    return {.images = x,
            .height = cuda::Forward(shape_.height),
            .width = cuda::Forward(shape_.width),
            .depth = Channels(),
            .rows = Rows(),
            .columns = WindowSize()};
  }

  template <typename T>
  absl::Status Forward(const T* x, const float* kernel, const float* bias,
                       T* y) {
    const Output<T> output = {.y = y,
                              .rows = Rows(),
                              .columns = Filters(),
                              .bias = options_.has_bias ? bias : nullptr,
                              .relu = options_.epilogue == Epilogue::kRelu};
    ASSIGN_OR_RETURN(CUstream_st * stream, device_.ComputeStream());
    return WithTile(output, [&]<typename Size>() {
      Launch(ForwardKernelOf<T, Size>(IsPacked(shape_.channels, x),
                                      IsPacked(shape_.filters, kernel)),
             BlocksOf<Size>(output), Size::kThreads, stream, WindowsOf(x),
             RightMatrix<float>{kernel, WindowSize(), Filters()}, output);
      return LaunchStatus("convolution");
    });
  }

  template <typename T>
  absl::Status InputGradient(const T* dy, const float* kernel, T* dx) {
    const WindowMatrix<T> windows = {
        .images = dy,
        .height = Backward(shape_.height),
        .width = Backward(shape_.width),
        .depth = Filters(),
        .rows = static_cast<int>(shape_.x_size() / shape_.channels),
        .columns = WindowSize() / Channels() * Filters()};
    const Output<T> output = {
        .y = dx, .rows = windows.rows, .columns = Channels()};
    const bool packed = IsPacked(shape_.filters, dy, kernel);
    ASSIGN_OR_RETURN(CUstream_st * stream, device_.ComputeStream());
    return WithTile(output, [&]<typename Size>() {
      Launch(packed ? InputGradientKernel<T, Size, kPackWidth>
                    : InputGradientKernel<T, Size, 1>,
             BlocksOf<Size>(output), Size::kThreads, stream, windows,
             TurnedKernel{kernel, Channels(), Filters()}, output);
      return LaunchStatus("gradient of a convolution's input");
    });
  }

  template <typename T>
  absl::Status KernelGradient(const T* x, const T* dy, float* dkernel) {
    if (shape_.filters <= NarrowTile::kN) {
      return KernelGradient<NarrowTile>(x, dy, dkernel);
    }
    return shape_.filters <= TallTile::kN
               ? KernelGradient<TallTile>(x, dy, dkernel)
               : KernelGradient<LargeTile>(x, dy, dkernel);
  }

  // The rows are divided into slices, because a kernel has few elements, and
  // each is a sum over all outputs. The division depends on the shape alone.
  template <typename Size, typename T>
  absl::Status KernelGradient(const T* x, const T* dy, float* dkernel) {
    const int64_t most =
        std::clamp<int64_t>(Rows() / kRowsOfASlice, 1, kMaxSlices);
    const int64_t wanted = std::clamp<int64_t>(
        kSlicedBlocks / CountTiles<Size>(WindowSize(), Filters()), 1, most);
    const int64_t slice = Ceiling(Ceiling(Rows(), wanted), Size::kK) * Size::kK;
    const int64_t slices = Ceiling(Rows(), slice);
    const int64_t size = shape_.window_size() * shape_.filters;
    float* sums = dkernel;
    if (slices > 1) {
      ASSIGN_OR_RETURN(sums, device_.Scratch(slices * size));
    }
    ASSIGN_OR_RETURN(CUstream_st * stream, device_.ComputeStream());
    const Output<float> output = {
        .y = sums, .rows = WindowSize(), .columns = Filters()};
    Launch(KernelGradientKernelOf<T, Size>(IsPacked(shape_.channels, x),
                                           IsPacked(shape_.filters, dy)),
           BlocksOf<Size>(output, slices), Size::kThreads, stream, WindowsOf(x),
           RightMatrix<T>{dy, Rows(), Filters()}, static_cast<int>(slice),
           output);
    RETURN_IF_ERROR(LaunchStatus("gradient of a convolution's kernel"));
    if (slices == 1) return absl::OkStatus();
    return SumFewRowsOf(device_, "sum of a kernel's gradients",
                        {sums, slices, size}, dkernel);
  }

  CudaDevice& device_;
  const ConvolutionShape shape_;
  const Options options_;
};

// A convolution by cuDNN, or by the kernels of this file for arrays that are
// not aligned as cuDNN wants them, or of a type that it does not read in the
// device's precision.
class DnnConvolutionOnDevice : public Convolution {
 public:
  DnnConvolutionOnDevice(CudaDevice& device, const ConvolutionShape& shape,
                         const Options& options,
                         std::unique_ptr<DnnConvolution> convolution)
      : device_(device),
        shape_(shape),
        options_(options),
        unaligned_(device, shape, options),
        convolution_(std::move(convolution)) {}

  absl::Status Forward(ConstElements x, const float* kernel, const float* bias,
                       Elements y) override {
    if (!SuitDnn(x, y)) {
      return unaligned_.Forward(x, kernel, bias, y);
    }
    RETURN_IF_ERROR(device_.ComputeStream().status());
    RETURN_IF_ERROR(convolution_->Forward(x, kernel, y));
    return cuda::ApplyEpilogue(device_, options_.has_bias ? bias : nullptr,
                               options_.epilogue, y, shape_.outputs(),
                               shape_.filters);
  }

  absl::Status VariableGradients(ConstElements x, ConstElements dy,
                                 float* dkernel, float* dbias) override {
    if (!SuitDnn(x, dy)) {
      return unaligned_.VariableGradients(x, dy, dkernel, dbias);
    }
    RETURN_IF_ERROR(device_.ComputeStream().status());
    RETURN_IF_ERROR(convolution_->KernelGradient(x, dy, dkernel));
    if (!options_.has_bias) return absl::OkStatus();
    return cuda::SumRows(device_, dy, shape_.outputs(), shape_.filters, dbias);
  }

  absl::Status InputGradient(ConstElements dy, const float* kernel,
                             Elements dx) override {
    if (!SuitDnn(dy, dx)) {
      return unaligned_.InputGradient(dy, kernel, dx);
    }
    RETURN_IF_ERROR(device_.ComputeStream().status());
    return convolution_->InputGradient(dy, kernel, dx);
  }

 private:
  // Returns true if cuDNN takes both arrays.
  bool SuitDnn(ConstElements a, ConstElements b) const {
    return a.type() == b.type() &&
           (a.type() == EdgeType::kFloat32 ||
            a.type() == device_.edge_type()) &&
           AreAligned(DnnConvolution::kAlignment, a.data(), b.data());
  }

  CudaDevice& device_;
  const ConvolutionShape shape_;
  const Options options_;
  WindowConvolution unaligned_;
  const std::unique_ptr<DnnConvolution> convolution_;
};

DnnConvolutionShape::Axis ForDnn(const WindowAxis& axis) {
  return {.input = axis.input,
          .window = axis.window,
          .stride = axis.stride,
          .output = axis.output,
          .before = axis.before,
          .after = axis.after()};
}

// Returns a convolution by cuDNN.
//   Unimplemented, FailedPrecondition  cuDNN does not have it, or is missing.
absl::StatusOr<std::unique_ptr<Convolution>> NewDnnConvolution(
    CudaDevice& device, const ConvolutionShape& shape,
    const Convolution::Options& options) {
  ASSIGN_OR_RETURN(CudaDnn* const dnn, device.dnn());
  ASSIGN_OR_RETURN(std::unique_ptr<DnnConvolution> convolution,
                   dnn->NewConvolution({.examples = shape.examples,
                                        .height = ForDnn(shape.height),
                                        .width = ForDnn(shape.width),
                                        .channels = shape.channels,
                                        .filters = shape.filters}));
  return std::make_unique<DnnConvolutionOnDevice>(device, shape, options,
                                                  std::move(convolution));
}

// Indices of rows and columns are int, with room for a tile behind the last.
absl::Status RequireSmallIndices(const ConvolutionShape& shape) {
  constexpr int64_t kMost = std::numeric_limits<int>::max() - 1024;
  const int64_t rows =
      std::max(shape.outputs(), shape.x_size() / shape.channels);
  if (rows > kMost) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a convolution of ", shape.examples, " images with ", rows,
        " pixels together, more than ", kMost, "; use a smaller batch"));
  }
  const int64_t terms = shape.window_size() / shape.channels *
                        std::max(shape.channels, shape.filters);
  if (terms > kMost) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a convolution with sums of ", terms, " products, more than ", kMost,
        "; use fewer channels or filters"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Convolution>> NewConvolution(
    Device& device, const ConvolutionShape& shape,
    const Convolution::Options& options, int64_t least_for_dnn) {
  auto& cuda_device = static_cast<CudaDevice&>(device);
  RETURN_IF_ERROR(RequireSmallIndices(shape));
  RETURN_IF_ERROR(cuda_device.ComputeStream().status());
  const bool is_wide = std::min(shape.channels, shape.filters) >= kManyChannels;
  if (cuda_device.precision() != Precision::kFloat32 &&
      shape.y_size() * shape.window_size() >=
          (is_wide ? least_for_dnn / 8 : least_for_dnn)) {
    absl::StatusOr<std::unique_ptr<Convolution>> convolution =
        NewDnnConvolution(cuda_device, shape, options);
    if (!absl::IsUnimplemented(convolution.status()) &&
        !absl::IsFailedPrecondition(convolution.status())) {
      return convolution;
    }
  }
  return std::make_unique<WindowConvolution>(cuda_device, shape, options);
}

}  // namespace parasol::cuda
