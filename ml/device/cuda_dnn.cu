#include "absl/strings/str_cat.h"
#include "ml/device/cuda_dnn.h"

#if PARASOL_HAVE_CUDNN

#include <cudnn.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/status_macros.h"
#include "ml/device/cuda_dnn_functions.h"
#include "ml/device/cuda_dnn_plan.h"
#include "ml/device/cuda_launch.h"
#include "ml/device/cuda_pack.h"
#include "ml/device/cuda_scratch.h"
#include "ml/device/cuda_status.h"

namespace parasol {
namespace {

// A faster plan that wants more is passed over.
constexpr int64_t kMaxWorkspaceBytes = int64_t{1} << 30;
constexpr int kTile = 32;

// to[columns, rows] = from[rows, columns] transposed, a tile at a time, so that
// both are touched along their rows. Blocks are counted along x alone, which
// may have more than 65,535.
template <typename From, typename To>
__global__ void TransposeKernel(const From* from, int64_t rows, int64_t columns,
                                To* to) {
  __shared__ float tile[kTile][kTile + 1];
  const int64_t tiles = (columns + kTile - 1) / kTile;
  const int64_t row = blockIdx.x / tiles * kTile;
  const int64_t column = blockIdx.x % tiles * kTile;
  const int x = threadIdx.x;
  for (int y = threadIdx.y; y < kTile; y += blockDim.y) {
    if (row + y < rows && column + x < columns) {
      tile[y][x] = cuda::ToFloat(from[(row + y) * columns + column + x]);
    }
  }
  __syncthreads();
  for (int y = threadIdx.y; y < kTile; y += blockDim.y) {
    if (column + y < columns && row + x < rows) {
      to[(column + y) * rows + row + x] = cuda::Rounded<To>(tile[x][y]);
    }
  }
}

template <typename From, typename To>
absl::Status Transpose(CUstream_st* stream, const From* from, int64_t rows,
                       int64_t columns, To* to) {
  const int64_t blocks =
      ((columns + kTile - 1) / kTile) * ((rows + kTile - 1) / kTile);
  cuda::Launch(TransposeKernel<From, To>, blocks, dim3(kTile, 8), stream, from,
               rows, columns, to);
  return LaunchStatus("transposition of a kernel");
}

// A part of cuDNN is missing, or is of another version. From cuDNN 9 on the
// thousands of a status are its kind.
bool IsIncomplete(cudnnStatus_t status) {
  constexpr int kNotInitialized = 1000;
  return status / 1000 * 1000 == kNotInitialized;
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
        y(stream, releases) {}
  ~Shared() {
    if (handle != nullptr) f.destroy(handle);
  }

  bool is_bfloat16() const { return precision == Precision::kBfloat16; }
  // The type of the elements of what cuDNN reads and writes, which are rounded
  // to TF32 as they are read.
  EdgeType edge_type() const {
    return is_bfloat16() ? EdgeType::kBfloat16 : EdgeType::kFloat32;
  }
  cudnnDataType_t type() const {
    return is_bfloat16() ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
  }

  const DnnFunctions f;
  CUstream_st* const stream;
  const Precision precision;
  cudnnHandle_t handle = nullptr;
  CudaScratch workspace;
  CudaScratch kernel, x, y;  // as cuDNN reads or writes them
  // The gradient whose rounded elements are in `y`.
  const void* rounded_dy = nullptr;
};

struct Plans {
  DnnPlan forward, kernel_gradient, input_gradient;

  int64_t workspace_bytes() const {
    return std::max({forward.workspace_bytes(),
                     kernel_gradient.workspace_bytes(),
                     input_gradient.workspace_bytes()});
  }
};

class LoadedConvolution : public DnnConvolution {
 public:
  LoadedConvolution(Shared& shared, const DnnConvolutionShape& shape,
                    const Plans& plans)
      : shared_(shared), shape_(shape), plans_(plans) {}

  // Takes the memory now that all passes will need.
  absl::Status Start() {
    shared_.rounded_dy = nullptr;
    RETURN_IF_ERROR(
        shared_.workspace.Reserve(plans_.workspace_bytes()).status());
    return Reserve(shared_.kernel, KernelSize()).status();
  }

  absl::Status Forward(ConstElements x, const float* kernel,
                       Elements y) override {
    shared_.rounded_dy = nullptr;
    ASSIGN_OR_RETURN(void* const in, Rounded(x, XSize(), shared_.x));
    ASSIGN_OR_RETURN(void* const filters, FiltersFirst(kernel));
    ASSIGN_OR_RETURN(void* const out, PlaceOf(y, YSize(), shared_.y));
    RETURN_IF_ERROR(Run(plans_.forward, in, filters, out));
    return Widen(out, YSize(), y);
  }

  absl::Status KernelGradient(ConstElements x, ConstElements dy,
                              float* dkernel) override {
    ASSIGN_OR_RETURN(void* const in, Rounded(x, XSize(), shared_.x));
    ASSIGN_OR_RETURN(void* const out, Rounded(dy, YSize(), shared_.y));
    ASSIGN_OR_RETURN(void* const filters,
                     Reserve(shared_.kernel, KernelSize()));
    RETURN_IF_ERROR(Run(plans_.kernel_gradient, in, filters, out));
    shared_.rounded_dy = dy.data();
    return shared_.is_bfloat16()
               ? Transpose(shared_.stream,
                           static_cast<const Bfloat16*>(filters),
                           shape_.filters, WindowSize(), dkernel)
               : Transpose(shared_.stream, static_cast<const float*>(filters),
                           shape_.filters, WindowSize(), dkernel);
  }

  absl::Status InputGradient(ConstElements dy, const float* kernel,
                             Elements dx) override {
    const bool is_rounded =
        std::exchange(shared_.rounded_dy, nullptr) == dy.data();
    ASSIGN_OR_RETURN(void* const out, is_rounded
                                          ? PlaceOf(dy, YSize(), shared_.y)
                                          : Rounded(dy, YSize(), shared_.y));
    ASSIGN_OR_RETURN(void* const filters, FiltersFirst(kernel));
    ASSIGN_OR_RETURN(void* const in, PlaceOf(dx, XSize(), shared_.x));
    RETURN_IF_ERROR(Run(plans_.input_gradient, in, filters, out));
    return Widen(in, XSize(), dx);
  }

 private:
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

  absl::StatusOr<void*> Reserve(CudaScratch& scratch, int64_t size) {
    return scratch.Reserve(size * BytesOf(shared_.edge_type()));
  }

  // Where cuDNN reads or writes `values`: there, unless they have another type
  // than it wants.
  absl::StatusOr<void*> PlaceOf(ConstElements values, int64_t size,
                                CudaScratch& scratch) {
    if (values.type() != shared_.edge_type()) return Reserve(scratch, size);
    return const_cast<void*>(values.data());
  }

  absl::StatusOr<void*> Rounded(ConstElements values, int64_t size,
                                CudaScratch& scratch) {
    ASSIGN_OR_RETURN(void* const place, PlaceOf(values, size, scratch));
    if (place != values.data()) {
      RETURN_IF_ERROR(cuda::Convert(shared_.stream, values.As<float>(), size,
                                    static_cast<Bfloat16*>(place)));
    }
    return place;
  }

  absl::Status Widen(const void* place, int64_t size, Elements values) {
    if (place == values.data()) return absl::OkStatus();
    return cuda::Convert(shared_.stream, static_cast<const Bfloat16*>(place),
                         size, values.As<float>());
  }

  absl::StatusOr<void*> FiltersFirst(const float* kernel) {
    ASSIGN_OR_RETURN(void* const place, Reserve(shared_.kernel, KernelSize()));
    RETURN_IF_ERROR(
        shared_.is_bfloat16()
            ? Transpose(shared_.stream, kernel, WindowSize(), shape_.filters,
                        static_cast<Bfloat16*>(place))
            : Transpose(shared_.stream, kernel, WindowSize(), shape_.filters,
                        static_cast<float*>(place)));
    return place;
  }

  absl::Status Run(const DnnPlan& plan, void* x, void* kernel, void* y) {
    ASSIGN_OR_RETURN(void* const workspace,
                     shared_.workspace.Reserve(plan.workspace_bytes()));
    return plan.Run(x, kernel, y, workspace);
  }

  Shared& shared_;
  const DnnConvolutionShape shape_;
  const Plans& plans_;
};

class LoadedDnn : public CudaDnn {
 public:
  LoadedDnn(const DnnFunctions& functions, CUstream_st* stream,
            Precision precision, uint64_t& releases)
      : shared_(functions, stream, precision, releases) {}

  absl::Status Start() {
    const cudnnStatus_t created = shared_.f.create(&shared_.handle);
    if (IsIncomplete(created)) {
      return absl::FailedPreconditionError(absl::StrCat(
          "cuDNN is not complete: status ", static_cast<int>(created)));
    }
    RETURN_IF_ERROR(DnnStatus(created, "cudnnCreate"));
    return DnnStatus(shared_.f.set_stream(shared_.handle, shared_.stream),
                     "cudnnSetStream");
  }

  absl::StatusOr<std::unique_ptr<DnnConvolution>> NewConvolution(
      const DnnConvolutionShape& shape) override {
    auto known = plans_.find(shape);
    if (known == plans_.end()) {
      ASSIGN_OR_RETURN(DnnPlan forward, Plan(DnnPass::kForward, shape));
      ASSIGN_OR_RETURN(DnnPlan kernel, Plan(DnnPass::kKernelGradient, shape));
      ASSIGN_OR_RETURN(DnnPlan input, Plan(DnnPass::kInputGradient, shape));
      known = plans_
                  .emplace(shape, Plans{std::move(forward), std::move(kernel),
                                        std::move(input)})
                  .first;
    }
    auto convolution =
        std::make_unique<LoadedConvolution>(shared_, shape, known->second);
    RETURN_IF_ERROR(convolution->Start());
    return convolution;
  }

 private:
  absl::StatusOr<DnnPlan> Plan(DnnPass pass, const DnnConvolutionShape& shape) {
    return DnnPlan::Create(shared_.f, shared_.handle, pass, shape,
                           shared_.type(), kMaxWorkspaceBytes);
  }

  Shared shared_;
  // Destroyed before the handle.
  std::map<DnnConvolutionShape, Plans> plans_;
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
