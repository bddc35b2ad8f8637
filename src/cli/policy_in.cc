#include "cli/policy_in.h"

#include <iostream>
#include <utility>

#include "base/files.h"

namespace muster::cli {

Result<ReadPolicy> PolicyIn(const std::string& path) {
  const auto text = path == "-" ? Result<std::string>(ReadStream(std::cin)) : ReadFile(path);
  if (!text) return tl::unexpected(text.error());
  auto file = engine::ReadPolicyFile(*text);
  if (!file) {
    auto error = file.error();
    error.message = path + ": " + error.message;
    return tl::unexpected(std::move(error));
  }
  auto policy = engine::ApplySettings(file->settings);
  if (!policy) return tl::unexpected(policy.error());
  return ReadPolicy{std::move(*file), *policy};
}

}  // namespace muster::cli
