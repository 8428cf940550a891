@echo off
rem start.bat             open the page
rem start.bat test ...    run the tests; further arguments go to pytest
rem start.bat COMMAND ... the same as python -m utils COMMAND ...
rem The first start creates .venv and installs requirements.txt; later starts only compare a stamp.
setlocal enabledelayedexpansion
cd /d "%~dp0"
set PYTHONUTF8=1
set VENV=.venv\Scripts\python.exe

rem a Python that was replaced, or whose pip installation was killed, does not work
%VENV% -c "import sys, importlib.util as u; sys.exit(not ((3, 11) <= sys.version_info < (3, 15) and u.find_spec('pip')))" >nul 2>&1
if not errorlevel 1 if not exist .venv\installed.txt %VENV% -m pip --version >nul 2>&1
if errorlevel 1 (
  if exist .venv echo The folder .venv is damaged; creating it again.
  if exist .venv rmdir /s /q .venv
  call :find_python
  if defined FOUND (
    !FOUND! -m venv .venv
  ) else (
    echo Python 3.11 to 3.14 was not found; trying to download one with uv ...
    uv venv --quiet --seed --python 3.12 .venv
  )
  if errorlevel 1 (
    echo Python could not be found or could not create .venv. Run: winget install Python.Python.3.12
    echo Then open a new window and start again.
    exit /b 1
  )
)
if exist .venv\installed.txt call :forget_broken
call :install requirements.txt .venv\installed
if errorlevel 1 exit /b 1

rem from here on, an exclamation mark in a text is itself
setlocal disabledelayedexpansion
if "%~1"=="" goto page
set "FIRST=%~1"
if "%FIRST:~0,2%"=="--" goto page
if "%~1"=="test" goto test
%VENV% -m utils %*
exit /b %errorlevel%

:page
%VENV% xtts_demo.py %*
exit /b %errorlevel%

:test
call :install tests\requirements.txt .venv\installed-tests
if errorlevel 1 exit /b 1
for /f "tokens=1,* delims= " %%a in ("%*") do set "REST=%%b"
%VENV% -m pytest %REST%
exit /b %errorlevel%

:find_python
for %%p in ("py -3.11" "py -3.12" "py -3.13" "py -3.14" "python3" "python") do (
  if not defined FOUND (
    %%~p -c "import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))" >nul 2>&1
    if not errorlevel 1 set FOUND=%%~p
  )
)
exit /b 0

:forget_broken
rem pip trusts the record of a package even if its files are missing, so remove the record too
set BROKEN=
for /f "delims=" %%b in ('%VENV% -m utils.system.packages') do set BROKEN=%%b
if not defined BROKEN exit /b 0
echo Missing, damaged or outdated packages: !BROKEN!. Installing them again.
%VENV% -m pip uninstall -y !BROKEN! >nul 2>&1
del .venv\installed.txt
exit /b 0

:install
rem %1 package list, %2 copy of the list that was installed last
fc /b %1 %2.txt >nul 2>&1 && fc /b overrides.txt %2-overrides.txt >nul 2>&1 && exit /b 0
echo Installing %1 ...
if "%1"=="requirements.txt" echo The first time it downloads 3 GB, or under 1 GB without an NVIDIA GPU, in several minutes.
call :uv_install %1
if errorlevel 1 %VENV% -m pip install --disable-pip-version-check --no-deps -r %1
if errorlevel 1 (
  echo The installation failed. See the lines above, then start again to continue.
  exit /b 1
)
copy /y %1 %2.txt >nul
copy /y overrides.txt %2-overrides.txt >nul
exit /b 0

:uv_install
rem uv finds the torch for this driver, and leaves out a package that has no wheel and that nothing here imports
%VENV% -m pip install --disable-pip-version-check --quiet uv==0.13.9
if errorlevel 1 exit /b 1
if "%1"=="requirements.txt" %VENV% -m utils.system.torch_build
%VENV% -m uv pip install --compile-bytecode --python %VENV% --override overrides.txt -r %1
exit /b %errorlevel%
