#include "parameters/client/shard_operation.h"

#include "ml/compression/half.h"

namespace parasol {

size_t AnswerBytes(const EncodedOperation& operation) {
  const ShardOperation& asked = operation.asked;
  if (!asked.gives_values()) return 0;
  size_t elements = 0;
  if (asked.is_dense()) {
    for (const ShardOperation::Range& range : asked.ranges()) {
      elements += range.count;
    }
  } else {
    elements = asked.rows().count * asked.rows().width;
  }
  return EncodedBytes(operation.encoding, elements);
}

}  // namespace parasol
