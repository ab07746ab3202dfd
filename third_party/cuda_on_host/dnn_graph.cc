#include "third_party/cuda_on_host/dnn_graph.h"

#include <algorithm>

#include "third_party/cuda_on_host/settings.h"

namespace cuda_on_host {
namespace {

// The attributes of an operation.
struct Names {
  ConvolutionPass pass;
  cudnnBackendAttributeName_t x, w, y, convolution, alpha, beta;
};

const Names* NamesOf(cudnnBackendDescriptorType_t type) {
  static const std::map<cudnnBackendDescriptorType_t, Names> names = {
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
       {ConvolutionPass::kForward, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA}},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
       {ConvolutionPass::kFilterGradient,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA}},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
       {ConvolutionPass::kInputGradient,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA}}};
  const auto found = names.find(type);
  return found == names.end() ? nullptr : &found->second;
}

}  // namespace

std::set<const void*>& LiveDescriptors() {
  static auto* const live = new std::set<const void*>;
  return *live;
}

Descriptor& At(cudnnBackendDescriptor_t descriptor) {
  if (LiveDescriptors().count(descriptor) == 0) {
    Die("a descriptor of cuDNN is used that does not exist any more");
  }
  return *static_cast<Descriptor*>(descriptor);
}

size_t BytesOf(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_INT64:
      return sizeof(int64_t);
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return sizeof(void*);
    default:
      return sizeof(int);
  }
}

cudnnStatus_t ReadArray(const Descriptor& descriptor, ConvolutionArray& array) {
  Reader reader(descriptor);
  reader.One<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64);
  const auto type = reader.One<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE,
                                                CUDNN_TYPE_DATA_TYPE);
  const auto axes =
      reader.All<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4);
  const auto strides =
      reader.All<int64_t>(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4);
  const auto alignment =
      reader.One<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64);
  if (!reader.is_whole()) return CUDNN_STATUS_BAD_PARAM;
  array = {.n = axes[0], .c = axes[1], .h = axes[2], .w = axes[3]};
  array.is_bfloat16 = type == CUDNN_DATA_BFLOAT16;
  if (std::any_of(axes.begin(), axes.end(), [](int64_t a) { return a <= 0; }) ||
      alignment <= 0) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  if (type != CUDNN_DATA_FLOAT && type != CUDNN_DATA_BFLOAT16) {
    return CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE;
  }
  const std::vector<int64_t> nhwc = {array.h * array.w * array.c, 1,
                                     array.w * array.c, array.c};
  return strides == nhwc ? CUDNN_STATUS_SUCCESS
                         : CUDNN_STATUS_NOT_SUPPORTED_LAYOUT;
}

cudnnStatus_t ReadConvolution(const Descriptor& descriptor, Convolution& s) {
  Reader reader(descriptor);
  const auto axes = [&reader](cudnnBackendAttributeName_t name) {
    return reader.All<int64_t>(name, CUDNN_TYPE_INT64, 2);
  };
  const auto count = reader.One<int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS,
                                         CUDNN_TYPE_INT64);
  const auto type = reader.One<cudnnDataType_t>(
      CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE);
  const auto mode = reader.One<cudnnConvolutionMode_t>(
      CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE);
  const auto before = axes(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
  const auto after = axes(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
  const auto dilations = axes(CUDNN_ATTR_CONVOLUTION_DILATIONS);
  const auto strides = axes(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  if (!reader.is_whole() || count != 2) return CUDNN_STATUS_BAD_PARAM;
  if (mode != CUDNN_CROSS_CORRELATION || type != CUDNN_DATA_FLOAT ||
      dilations != std::vector<int64_t>{1, 1}) {
    return CUDNN_STATUS_NOT_SUPPORTED;
  }
  s.before_h = before[0];
  s.before_w = before[1];
  s.after_h = after[0];
  s.after_w = after[1];
  s.stride_h = strides[0];
  s.stride_w = strides[1];
  return std::min({s.before_h, s.before_w, s.after_h, s.after_w}) >= 0 &&
                 std::min(s.stride_h, s.stride_w) > 0
             ? CUDNN_STATUS_SUCCESS
             : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t ReadOperation(const Descriptor& descriptor, Convolution& s,
                            ArrayNames& array_names) {
  const Names* const names = NamesOf(descriptor.type);
  if (names == nullptr) return CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE;
  Reader reader(descriptor);
  const Descriptor& x = reader.Part(names->x);
  const Descriptor& w = reader.Part(names->w);
  const Descriptor& y = reader.Part(names->y);
  const Descriptor& convolution = reader.Part(names->convolution);
  const auto alpha = reader.One<float>(names->alpha, CUDNN_TYPE_FLOAT);
  const auto beta = reader.One<float>(names->beta, CUDNN_TYPE_FLOAT);
  if (!reader.is_whole()) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
  if (alpha != 1 || beta != 0) return CUDNN_STATUS_NOT_SUPPORTED;
  s.pass = names->pass;
  for (const cudnnStatus_t status :
       {ReadArray(x, s.x), ReadArray(w, s.w), ReadArray(y, s.y),
        ReadConvolution(convolution, s)}) {
    if (status != CUDNN_STATUS_SUCCESS) return status;
  }
  const auto name_of = [](const Descriptor& array) {
    return Reader(array).One<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID,
                                      CUDNN_TYPE_INT64);
  };
  array_names = {name_of(x), name_of(w), name_of(y)};
  return s.Fits() ? CUDNN_STATUS_SUCCESS
                  : CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH;
}

cudnnStatus_t ReadGraph(const Descriptor& graph, Convolution& s,
                        ArrayNames& names) {
  Reader reader(graph);
  reader.One<cudnnHandle_t>(CUDNN_ATTR_OPERATIONGRAPH_HANDLE,
                            CUDNN_TYPE_HANDLE);
  const Descriptor& operation = reader.Part(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  if (!reader.is_whole()) return CUDNN_STATUS_BAD_PARAM;
  return ReadOperation(operation, s, names);
}

}  // namespace cuda_on_host
