// SPDX-License-Identifier: Apache-2.0
// Seeds of each target.
#pragma once

#include <string>
#include <vector>

namespace fusebox::fuzz {

std::vector<std::string> SavedModelSeeds();
std::vector<std::string> OtherSavedModelSeeds();  // variables missing in the target's checkpoint
std::vector<std::string> FrozenGraphSeeds();
std::vector<std::string> BundleSeeds();
std::vector<std::string> RecordSeeds();
std::vector<std::string> KerasSeeds();
std::vector<std::string> KerasConfigSeeds();
std::vector<std::string> TfliteSeeds();
std::vector<std::string> ModelSeeds();
std::vector<std::string> OtherModelSeeds();
std::vector<std::string> DelegatedSeeds();
std::vector<std::string> OtherDelegatedSeeds();
std::vector<std::string> ManifestSeeds();
std::vector<std::string> ConfigSeeds();
std::vector<std::string> StringSeeds();
std::vector<std::string> CApiSeeds();

}  // namespace fusebox::fuzz
