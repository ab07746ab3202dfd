#ifndef PARASOL_ML_INITIALIZER_INITIALIZER_FIELDS_H_
#define PARASOL_ML_INITIALIZER_INITIALIZER_FIELDS_H_

#include "absl/status/status.h"
#include "proto/job.pb.h"

namespace parasol {

// Sets the unset fields of an initializer whose kind is chosen.
void FillInitializer(job::Initializer& initializer);

// Chooses glorot_uniform, as for a kernel, or zeros, as for a bias, unless a
// kind is chosen, and sets the unset fields.
void FillKernelInitializer(job::Initializer& initializer);
void FillBiasInitializer(job::Initializer& initializer);

// Checks that a kind is chosen and that its numbers are in their ranges.
//   InvalidArgument  "<field>: …"; the caller puts the initializer's path in
//                    front.
absl::Status CheckInitializer(const job::Initializer& initializer);
// Checks likewise, and that the kind suits a matrix, or a row of numbers.
absl::Status CheckKernelInitializer(const job::Initializer& initializer);
absl::Status CheckBiasInitializer(const job::Initializer& initializer);

}  // namespace parasol

#endif  // PARASOL_ML_INITIALIZER_INITIALIZER_FIELDS_H_
