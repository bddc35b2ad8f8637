// KeptModel: a trained model in a file that stays, in the format of safetensors.
//
// A file is a header in JSON, which says where each layer's floats lie and what the model is (its
// texts, seed, steps, and the hash of the parameters as muster-train prints it), and the floats
// behind it; so other tools read it too. It appears whole, by rename, in a folder that is made
// where it is missing, and outlives a crash of the machine from then on. One that is cut off, does
// not hold together or has another hash than it says is refused. Takes the parameters once more in
// memory.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace muster::train {

struct KeptModel {
  std::map<std::string, std::string> facts = {};  // "model", "data", "seed", ...; all but the hash
  std::vector<std::size_t> layers = {};           // floats of each; together all parameters
  std::vector<float> parameters = {};
};

Result<void> WriteModel(const std::string& path, const KeptModel& model);
Result<KeptModel> ReadModel(const std::string& path);

// As it is printed and reported.
std::string HashText(const std::vector<float>& parameters);

}  // namespace muster::train
