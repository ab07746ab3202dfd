#ifndef PARASOL_ML_TAPE_RANDOM_H_
#define PARASOL_ML_TAPE_RANDOM_H_

#include <cstdint>

#include "ml/tape/random_key.h"
#include "ml/tape/tensor.h"
#include "ml/tape/tensor_shape.h"

namespace parasol {

// Random draws, which depend on the key and on nothing else: a step that is
// made again draws again what it drew. No tape follows a draw: what is to have
// a gradient is computed from it, as in mean + deviation * RandomNormal().

// Returns numbers from the normal distribution with mean 0 and deviation 1.
Tensor RandomNormal(const TensorShape& shape, const RandomKey& key);
// Returns numbers from [low, high).
Tensor RandomUniform(const TensorShape& shape, const RandomKey& key,
                     float low = 0, float high = 1);
// Returns `draws` class numbers, int64 [..., draws], for each row of `logits`
// [..., classes]: class c with probability softmax(row)[c].
Tensor RandomCategorical(const Tensor& logits, int64_t draws,
                         const RandomKey& key);

}  // namespace parasol

#endif  // PARASOL_ML_TAPE_RANDOM_H_
