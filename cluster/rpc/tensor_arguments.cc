#include "cluster/rpc/tensor_arguments.h"

#include "grpc/grpc.h"

namespace parasol {

std::vector<std::pair<const char*, int>> TensorArguments() {
  return {
      // The largest that HTTP/2 allows: a message is one frame.
      {GRPC_ARG_HTTP2_MAX_FRAME_SIZE, 16777215},
      // A fixed window instead of probing, which pauses to measure. What a peer
      // can make us hold per stream that we don't read.
      {GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 16 << 20},
      {GRPC_ARG_HTTP2_BDP_PROBE, 0},
      {GRPC_ARG_HTTP2_WRITE_BUFFER_SIZE, 8 << 20},
      // Few large reads instead of many of 8 KiB.
      {GRPC_ARG_TCP_READ_CHUNK_SIZE, 4 << 20},
      {GRPC_ARG_TCP_MIN_READ_CHUNK_SIZE, 64 << 10},
      {GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, 4 << 20},
  };
}

}  // namespace parasol
