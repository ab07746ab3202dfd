#ifndef PARASOL_ML_INPUT_FORMAT_IDX_FORMAT_H_
#define PARASOL_ML_INPUT_FORMAT_IDX_FORMAT_H_

#include <cstdint>

// IDX, the format of MNIST's files; all numbers are big-endian.
//
//   images = magic:u32(2051) count:u32 height:u32 width:u32
//            (pixel:u8)^(count·height·width)
//   labels = magic:u32(2049) count:u32 (label:u8)^count
//
// A magic is the type of the elements (8: u8) and the number of dimensions.
namespace parasol {

inline constexpr uint32_t kIdxImagesMagic = 0x00000803;
inline constexpr uint32_t kIdxLabelsMagic = 0x00000801;

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FORMAT_IDX_FORMAT_H_
