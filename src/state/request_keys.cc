#include "state/request_keys.h"

#include <algorithm>
#include <utility>

namespace muster::state {

void RequestKeys::DropOldest(OfUser& of) {
  const auto found = of.by_key.find(of.order.front());
  of.bytes -= found->second.said.answer.size();
  of.by_key.erase(found);
  of.order.pop_front();
  --size_;
}

void RequestKeys::Add(RequestRecord record) {
  auto& of = users_[record.said.user];
  const auto bytes = record.said.answer.size();
  const auto key = record.said.key;
  if (!of.by_key.emplace(key, std::move(record)).second) return;  // the first answer counts
  of.order.push_back(key);
  of.bytes += bytes;
  ++size_;
  while (of.order.size() > kOfUser || (of.bytes > kBytesOfUser && of.order.size() > 1)) {
    DropOldest(of);
  }
  if (size_ <= kInAll) return;
  DropOldest(std::max_element(users_.begin(), users_.end(), [](const auto& a, const auto& b) {
               return a.second.order.size() < b.second.order.size();
             })->second);
}

void RequestKeys::AddSubmitted(const std::string& user, const std::string& text,
                               model::JobNumber job) {
  const auto digest = text.rfind('#');
  if (digest == std::string::npos || digest == 0) return;
  const auto number = text.rfind('#', digest - 1);
  if (number == std::string::npos || text.substr(number, digest - number) != "#0") return;
  RequestRecord record;
  record.said.user = user;
  record.said.key = text.substr(0, number);
  record.said.digest = text.substr(digest + 1);
  record.job = job;
  Add(std::move(record));
}

bool RequestRecord::IsOf(const std::string& digest) const {
  return said.digest.size() != RequestKeys::kDigestSize || said.digest == digest;
}

const RequestRecord* RequestKeys::Find(const std::string& user, const std::string& key) const {
  const auto of = users_.find(user);
  if (of == users_.end()) return nullptr;
  const auto found = of->second.by_key.find(key);
  return found == of->second.by_key.end() ? nullptr : &found->second;
}

std::vector<RequestRecord> RequestKeys::List() const {
  std::vector<RequestRecord> list;
  for (const auto& [user, of] : users_) {
    for (const auto& key : of.order) list.push_back(of.by_key.at(key));
  }
  return list;
}

}  // namespace muster::state
