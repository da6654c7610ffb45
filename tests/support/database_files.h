#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace weir::test {

/// Changes the owner of a folder and its contents to the system user that a database server runs
/// as; does nothing unless we are root.
void GiveTo(const std::string& user, const std::filesystem::path& path);

/// The files of a new, empty database, made once per build directory: `make` is given the folder to
/// create, which belongs to `user`, next to an empty folder `tmp`. Concurrent callers
/// wait for the one that creates it.
std::filesystem::path DatabaseTemplate(
    const std::string& name, const std::string& user,
    const std::function<void(const std::filesystem::path& folder)>& make);

}  // namespace weir::test
