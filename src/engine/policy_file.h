// A policy file: what an admin wants otherwise than by default.
//
//   name: gentle                    # optional, as is `about`
//   policy: {decay_half_life: 3d, grow: off}
//
// The settings are those of policy_settings.h; what the file does not state has its default, so
// `policy: {}` is the default itself. All mistakes are found in one pass, each with its line and
// column, what is allowed there and the name that was probably meant.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/policy_settings.h"
#include "model/document_writer.h"
#include "model/problems.h"

namespace muster::engine {

struct PolicyFile {
  std::string name;
  std::string about;
  SettingValues settings;  // what the file states, in canonical text; legal, see ApplySettings
  friend bool operator==(const PolicyFile&, const PolicyFile&) = default;
};

PolicyFile DecodePolicyFile(std::string_view text, model::Problems& problems);  // YAML or JSON
Result<PolicyFile> ReadPolicyFile(std::string_view text);                       // the same
std::string WritePolicyFile(const PolicyFile& file, model::TextFormat format);

}  // namespace muster::engine
