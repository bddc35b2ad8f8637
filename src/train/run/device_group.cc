#include "train/run/device_group.h"

#include <algorithm>
#include <array>
#include <set>
#include <span>

#include "train/run/tags.h"

namespace muster::train {

namespace {

constexpr Tag kNames = kMeetTags | Tag{1} << 40U;
constexpr Tag kInvitation = kNames + 1;

// What is told has one size, filled up with zeros.
using Told = std::array<char, 256>;

Told Filled(const std::string& text) {
  Told out{};
  std::ranges::copy(text.substr(0, out.size() - 1), out.begin());
  return out;
}

}  // namespace

// Not from the thread: it may come to it only after the group was left.
DeviceGroup::DeviceGroup(DeviceSum& device, Fabric& fabric, int members)
    : device_(device), fabric_(fabric), members_(members) {
  device_.Begin();
  thread_ = std::thread([this] { Form(); });
}

DeviceGroup::~DeviceGroup() {
  device_.Leave();
  thread_.join();
}

void DeviceGroup::Form() {
  const auto apart = AllApart();
  if (!apart || !*apart) return;
  const auto invitation = Invitation();
  if (!invitation || invitation->empty()) return;
  joined_ = device_.Join(*invitation, fabric_.rank(), members_).has_value();
}

Result<bool> DeviceGroup::AllApart() {
  const Told mine = Filled(device_.Device());
  std::set<std::string> names{mine.data()};
  for (int rank = 0; rank < members_; ++rank) {
    if (rank != fabric_.rank()) fabric_.Offer(rank, kNames, std::as_bytes(std::span(mine)));
  }
  for (int rank = 0; rank < members_; ++rank) {
    if (rank == fabric_.rank()) continue;
    Told theirs{};
    const auto told = fabric_.Fetch(rank, kNames, std::as_writable_bytes(std::span(theirs)));
    if (!told) return tl::unexpected(told.error());
    names.insert(theirs.data());
  }
  for (int rank = 0; rank < members_; ++rank) {
    if (rank == fabric_.rank()) continue;
    if (const auto taken = fabric_.Taken(rank, kNames); !taken)
      return tl::unexpected(taken.error());
  }
  return !names.contains("") && static_cast<int>(names.size()) == members_;
}

// Its length comes first: bytes of it may be zero. Empty: there is no group.
Result<std::string> DeviceGroup::Invitation() {
  Told told{};
  if (fabric_.rank() != 0) {
    const auto heard = fabric_.Fetch(0, kInvitation, std::as_writable_bytes(std::span(told)));
    if (!heard) return tl::unexpected(heard.error());
    return std::string(told.data() + 1, static_cast<unsigned char>(told[0]));
  }
  const auto made = device_.Invite();
  const std::string text = made && made->size() < told.size() ? *made : "";
  told[0] = static_cast<char>(text.size());
  std::ranges::copy(text, told.begin() + 1);
  for (int rank = 1; rank < members_; ++rank) {
    fabric_.Offer(rank, kInvitation, std::as_bytes(std::span(told)));
  }
  for (int rank = 1; rank < members_; ++rank) {
    if (const auto taken = fabric_.Taken(rank, kInvitation); !taken)
      return tl::unexpected(taken.error());
  }
  return text;
}

}  // namespace muster::train
