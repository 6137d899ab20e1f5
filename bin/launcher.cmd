rem The part of the launcher that is the same on every machine; `setup` writes it behind lines that set the recorded Node.
rem It starts the part in JavaScript, which knows the rest, with the first Node that is there. An entry whose arguments
rem hold percent signs, ampersands, carets, exclamation marks or quotes names Node and that part instead.
rem cmd.exe reads a batch file line by line while it runs, and a newer version may replace this one in the meantime. So
rem a line that starts a program ends the batch file first, by a jump to a label that is not there: the rest of the line
rem is run all the same, and its exit code is that of the program.
if exist "%mw_node%" goto start
for %%F in ("%ProgramFiles%\nodejs\node.exe" "%LOCALAPPDATA%\Programs\nodejs\node.exe") do if exist "%%~F" set "mw_node=%%~F"
for /d %%D in ("%APPDATA%\nvm\v*" "%LOCALAPPDATA%\Volta\tools\image\node\*") do if exist "%%~D\node.exe" set "mw_node=%%~D\node.exe"
for /d %%D in ("%APPDATA%\fnm\node-versions\v*") do if exist "%%~D\installation\node.exe" set "mw_node=%%~D\installation\node.exe"
if exist "%mw_node%" goto start

set "mw_why=no Node.js was found on this machine, and %mw_node% is gone"
set "mw_cure=Install Node.js, then run: %mw_name% setup"
set mw_all=%*
set "mw_limited="
if "%~1"=="wrap" goto scan
goto ended

:start
endlocal & goto #_undefined_# 2>nul || title %ComSpec% & "%mw_node%" "%~dp0%mw_name%-launcher.cjs" %*

:scan
shift
set "mw_word=%~1"
if not defined mw_word goto ended
if "%mw_word:~0,7%"=="--allow" set "mw_limited=yes"
if "%mw_word:~0,6%"=="--deny" set "mw_limited=yes"
if not "%mw_word%"=="--" goto scan
if "%~2"=="" goto ended
if defined mw_limited goto limited
>&2 echo %mw_name%: %mw_why%, so %~n2 runs without %mw_title%. %mw_cure%
rem A host that quotes every argument has quoted the two dashes as well.
if "%~1"==%1 goto quoted
endlocal & set "%mw_variables%ENTRY_STORE=" & goto #_undefined_# 2>nul || title %ComSpec% & %mw_all:* -- =%
:quoted
endlocal & set "%mw_variables%ENTRY_STORE=" & goto #_undefined_# 2>nul || title %ComSpec% & %mw_all:* "--" =%

:ended
>&2 echo %mw_name%: %mw_why%, so this server cannot start. %mw_cure%
exit /b 70

:limited
>&2 echo %mw_name%: %mw_why%. %~n2 was not started without it, because the entry limits its tools with --allow or --deny. %mw_cure%
exit /b 70
