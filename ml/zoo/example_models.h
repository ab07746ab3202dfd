#ifndef PARASOL_ML_ZOO_EXAMPLE_MODELS_H_
#define PARASOL_ML_ZOO_EXAMPLE_MODELS_H_

#include <map>
#include <string>

#include "proto/job.pb.h"

namespace parasol::zoo {

// Returns the models of the example jobs, by the names of their files without
// ".textproto".
std::map<std::string, job::Model> ExampleModels();

}  // namespace parasol::zoo

#endif  // PARASOL_ML_ZOO_EXAMPLE_MODELS_H_
