#include "sim/report/folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/files.h"

namespace muster::sim::report {
namespace {

namespace fs = std::filesystem;

Error CannotWrite(const std::string& path, const std::string& why) {
  return {ErrorCode::kDenied, fmt::format("cannot write \"{}\": {}", path, why),
          "check the path, who may write there, and the room"};
}

// What is not there yet is made in the nearest folder that is.
Result<void> CheckAccess(fs::path place) {
  std::error_code error;
  if (place.is_relative()) place = fs::current_path(error) / place;
  while (!fs::exists(place, error) && place.has_relative_path()) place = place.parent_path();
  if (::access(place.c_str(), W_OK | X_OK) == 0) return {};
  return tl::unexpected(CannotWrite(place.string(), std::strerror(errno)));
}

Result<void> WriteNew(const fs::path& path, const std::string& text) {
  std::error_code gone;
  fs::remove(path, gone);  // a link is replaced and not followed
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (!out) return tl::unexpected(CannotWrite(path.string(), "it is not all there"));
  return {};
}

}  // namespace

Result<void> CheckFolder(const std::string& folder, bool over) {
  if (folder.empty()) return Fail(ErrorCode::kUsage, "a folder has no empty name");
  std::error_code error;
  const auto status = fs::status(folder, error);
  if (!fs::exists(status)) {
    if (status.type() == fs::file_type::not_found) return CheckAccess(folder);
    return tl::unexpected(CannotWrite(folder, error.message()));
  }
  if (!fs::is_directory(status)) {
    return Fail(ErrorCode::kConflict, folder + " is no folder; it was not touched",
                "give another name");
  }
  const bool empty = fs::is_empty(folder, error);
  if (error) return tl::unexpected(CannotWrite(folder, error.message()));
  if (auto checked = CheckAccess(folder); !checked) return checked;
  if (empty) return {};
  const auto page = ReadFile((fs::path(folder) / kPageName).string());
  if (!page || !IsReport(*page)) {
    return Fail(ErrorCode::kConflict,
                fmt::format("{} has files that are no report; it was not touched", folder),
                "give another name, or one for a new folder in it");
  }
  if (!over) {
    return Fail(ErrorCode::kConflict,
                fmt::format("{} holds a report already; it was not touched", folder),
                "give another name, or --yes to write over it");
  }
  return {};
}

Result<void> WriteReport(const std::string& folder, const std::vector<File>& files, bool over) {
  if (auto checked = CheckFolder(folder, over); !checked) return checked;
  const fs::path place(folder);
  std::error_code error;
  fs::create_directories(place, error);
  if (error) return tl::unexpected(CannotWrite(folder, error.message()));
  const auto old = ReadFile((place / kPageName).string());
  for (const auto& name : old ? PlotsOf(*old) : std::vector<std::string>{}) {
    fs::remove(place / name, error);
  }
  for (const auto& file : files) {
    if (auto written = WriteNew(place / file.name, file.text); !written) return written;
  }
  return {};
}

}  // namespace muster::sim::report
